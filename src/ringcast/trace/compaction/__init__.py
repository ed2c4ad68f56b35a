"""Compaction of traces: names that say what a file stands for, locks, and the joining of files."""
