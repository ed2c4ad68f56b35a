"""Finds what is wrong in a trace, by sender, on the driver or in tasks of Spark."""
