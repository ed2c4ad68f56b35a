"""Sweeps: the simulator over a grid of settings, networks and seeds, fanned out by Spark."""

from ringcast.spark.sweep.grid import Grid
from ringcast.spark.sweep.run import Sweep, run_grid, sweep

__all__ = ["Grid", "Sweep", "run_grid", "sweep"]
