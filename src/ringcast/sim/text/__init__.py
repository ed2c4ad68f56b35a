"""Simulated runs as text: the space-time log, frames in words, scripts."""
