"""The generated pages by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.reference import api, commands, frames, log_events, settings, stats, timers

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings.page,
    "commands.md": commands.page,
    "frames.md": frames.page,
    "log-events.md": log_events.page,
    "python.md": api.page,
    "timers.md": timers.page,
    "stats.md": stats.page,
}
