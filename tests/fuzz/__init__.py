"""Fuzzing, led by coverage: `make fuzz SECONDS=60`."""
