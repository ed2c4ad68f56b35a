"""The checks of the simulator: guarantees, memory bounds and recovery times."""
