"""This tree beside another one of this project: the same scenarios, by turns, in one run."""
