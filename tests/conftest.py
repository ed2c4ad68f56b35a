"""Settings for every test: how Hypothesis searches, and which folders carry which marker."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, on every machine, and no verdict that depends on how fast it is.
# A busy machine may take long to draw examples: that says nothing about the code.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# The search for new failures, by hand: pytest --hypothesis-profile=search tests/properties
settings.register_profile("search", deadline=None, database=None, max_examples=5_000)
settings.load_profile("repeatable")

# A shell starts commands in the background with Ctrl-C ignored, and they pass that on to what they
# start: then no process of a test could be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MARKER_OF_FOLDER = {"spark": "spark", "runtime": "net"}
"""Tests below tests/<folder> need what the marker says."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, so that `-m "not spark"` leaves out all that needs Spark."""
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        if folder in MARKER_OF_FOLDER:
            item.add_marker(MARKER_OF_FOLDER[folder])
