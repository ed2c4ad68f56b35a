"""Small pieces measured by themselves: window, codec, ladder and simulator.

Results are nanoseconds of the processor's time a message, kept beside what a loop of plain Python
takes, so that results of different machines compare.
"""
