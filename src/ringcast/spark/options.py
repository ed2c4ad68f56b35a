"""The options of `format("ringcast")` when it reads; a wrong or unknown one is told at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from ringcast.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a reader was asked for."""

    path: Path
    """`path`: the journal's directory, which executors see under the same name."""
    max_rows: int | None = None
    """`maxRowsPerBatch`: a smaller batch is ready sooner, a larger one costs less a row."""
    max_partitions: int = 200
    """`maxPartitions`: one a segment up to here, then several segments share one: tasks cost."""
    fail_on_loss: bool = True
    """`failOnDataLoss`: whether a query stops when retention was quicker than it."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """The options by their names, in any case; raises ConfigError."""
        given = {name.lower(): value for name, value in options.items()}
        known = {name.lower(): name for name in NAMES}
        for name in given:
            if name not in known:
                raise ConfigError(f"unknown option {name}: the source has {', '.join(NAMES)}")
        if not given.get("path"):
            raise ConfigError("the option path is missing: give the journal's directory to load()")
        return cls(
            path=_local(given["path"]),
            max_rows=_positive(given, "maxRowsPerBatch"),
            max_partitions=_positive(given, "maxPartitions") or cls.max_partitions,
            fail_on_loss=_boolean(given, "failOnDataLoss", cls.fail_on_loss),
        )


def _local(path: str) -> Path:
    """A path or a file: address of this machine, made absolute where the driver runs."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        path = unquote(parts.path)
    elif "://" in path:
        raise ConfigError(
            f"{path} is not on a file system of this machine: mount it, and give that"
        )
    return Path(os.path.abspath(path))


def _positive(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ConfigError(f"the option {name} is {text!r}: give a whole number above 0")
    return int(text)


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.lower() not in {"true", "false"}:
        raise ConfigError(f"the option {name} is {text!r}: give true or false")
    return text.lower() == "true"


NAMES = ("path", "maxRowsPerBatch", "maxPartitions", "failOnDataLoss")
