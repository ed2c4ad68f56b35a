"""What the tests of the command line share: a place for status sockets, and nothing left behind."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.runtime.command import Command, commands


@pytest.fixture
def home() -> Iterator[Path]:
    """A run directory of the test's own; its name is short, as those of sockets have to be."""
    with TemporaryDirectory(prefix="rc-") as path:
        yield Path(path)


@pytest.fixture
def running() -> Iterator[list[Command]]:
    """The commands that a test starts."""
    with commands() as started:
        yield started
