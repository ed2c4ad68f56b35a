"""The options of `format("ringcast")` when it reads and when it writes; a wrong or unknown one is
told at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast.journal.read.conditions_text import CONDITIONS, parse_conditions
from ringcast.journal.read.prune import Conditions
from ringcast.journal.read.start import EARLIEST, StartingPoint, parse_start
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.spec import StackSpec


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a reader was asked for."""

    path: Path | str
    """`path`: the journal's directory, which executors see under the same name, or its address in
    an object store."""
    table: str = "messages"
    """`table`: what to read, one of TABLES."""
    max_rows: int | None = None
    """`maxRowsPerBatch`: a smaller batch is ready sooner, a larger one costs less a row."""
    max_bytes: int | None = None
    """`maxBytesPerBatch`: the same in bytes of Parquet, by the averages of manifests."""
    start: StartingPoint = field(default_factory=StartingPoint)
    """`startingOffsets`: where a query without a checkpoint begins."""
    max_partitions: int = 200
    """`maxPartitions`: one per segment up to here; beyond, segments share one, since tasks cost."""
    fail_on_loss: bool = True
    """`failOnDataLoss`: whether a query stops when retention was quicker than it."""
    conditions: Conditions = field(default_factory=Conditions)
    """`group`, `sender`, `seqno`, `sent_at`, `delivered_at`: only the messages that are so."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """The options by their names, in any case; raises ConfigError."""
        given = _known(options, NAMES, "source")
        if not given.get("path"):
            raise ConfigError(
                "the option path is missing: give the journal's directory to load(), or create a "
                "table with LOCATION 'journal/' and without columns"
            )
        table = _table(given)
        asked = [name for name in CONDITIONS if name in given]
        if asked and table != TABLES[0]:
            raise ConfigError(f"the option {asked[0]} is for messages: leave it out for {table}")
        return cls(
            path=_place(given["path"]),
            table=table,
            max_rows=_positive(given, "maxRowsPerBatch"),
            max_bytes=_positive(given, "maxBytesPerBatch"),
            start=parse_start(given.get("startingoffsets", EARLIEST)),
            max_partitions=_positive(given, "maxPartitions") or cls.max_partitions,
            fail_on_loss=_boolean(given, "failOnDataLoss", cls.fail_on_loss),
            conditions=parse_conditions(given),
        )


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """What a writer was asked for."""

    group: str
    """`group`: the name of the group."""
    stack: StackSpec
    """`preset` or `spec`, with `seeds`, `bind` and `port`: the stack, which all members share."""
    timeout: float = 30.0
    """`timeout`: seconds to join, and that the slowest receiver may take nothing at all."""
    idle: float = 60.0
    """`idle`: seconds without rows after which the machine's member leaves the group."""
    min_receivers: int = 1
    """`minReceivers`: how many members must be there that receive, for a row to be written."""
    sort: bool = False
    """`sort`: send the rows of a partition in the order of their bytes, so that a partition which
    comes out of a shuffle is the same at each attempt. Takes the memory for a partition."""
    key_file: str = ""
    """`keyFile`: the key file of a closed group, which executors have under the same name."""
    query: str | None = None
    """`query`: of a batch, the name under which it can be repeated without being seen twice."""
    epoch: int = 0
    """`epoch`: of a batch with a name, its number; it must rise."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """The options by their names, in any case; raises ConfigError."""
        given = _known(options, (*SINK_NAMES, *SPARKS_OWN), "sink")
        if not given.get("group"):
            raise ConfigError("the option group is missing: give the name of the group to write to")
        if "epoch" in given and "query" not in given:
            raise ConfigError("the option epoch counts the batches of a query: give query as well")
        return cls(
            group=given["group"],
            stack=_stack(given),
            timeout=_seconds(given, "timeout", cls.timeout),
            idle=_seconds(given, "idle", cls.idle),
            min_receivers=_positive(given, "minReceivers") or cls.min_receivers,
            sort=_boolean(given, "sort", cls.sort),
            key_file=given.get("keyfile", ""),
            query=given.get("query"),
            epoch=_whole(given, "epoch", cls.epoch),
        )


def _stack(given: Mapping[str, str]) -> StackSpec:
    """The stack that the options describe, as commands do it with the same arguments."""
    seeds = tuple(seed.strip() for seed in given.get("seeds", "").split(",") if seed.strip())
    for seed in seeds:
        split_endpoint(seed)
    if "spec" in given and "preset" in given:
        raise ConfigError("the options preset and spec both name a stack: give one of them")
    if "spec" in given:
        stack = StackSpec.load(given["spec"])
    else:
        default = "tcp" if seeds or "port" in given else "loopback"
        stack = presets.named(given.get("preset", default))
    if seeds:
        stack = stack.replace("Discovery", seeds=seeds)
    settings: dict[str, object] = {"bind": given["bind"]} if "bind" in given else {}
    if "port" in given:
        settings["port"] = _positive(given, "port")
    return stack.replace("transport", **settings) if settings else stack


def _known(options: Mapping[str, str], names: Sequence[str], what: str) -> dict[str, str]:
    """The options by their names in small letters; raises ConfigError for one that is unknown."""
    given = {name.lower(): value for name, value in options.items()}
    known = {name.lower() for name in names}
    shown = ", ".join(name for name in names if name not in SPARKS_OWN)
    for name in given:
        if name not in known:
            raise ConfigError(f"unknown option {name}: the {what} has {shown}")
    return given


def _place(path: str) -> Path | str:
    """The address of a store; a path or a file: address of this machine is made absolute where the
    driver runs."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        path = unquote(parts.path)
    elif "://" in path:
        return path
    return Path(os.path.abspath(path))


def _table(given: Mapping[str, str]) -> str:
    table = given.get("table", TABLES[0]).lower()
    if table not in TABLES:
        raise ConfigError(f"the option table is {table!r}: give one of {', '.join(TABLES)}")
    return table


def _positive(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if (number := _digits(text)) is None or number == 0:
        raise ConfigError(f"the option {name} is {_short(text)!r}: give a whole number above 0")
    return number


def _whole(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    if (number := _digits(text)) is None:
        raise ConfigError(f"the option {name} is {_short(text)!r}: give a whole number")
    return number


def _digits(text: str) -> int | None:
    """A whole number that Spark can count with; None for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) < DIGITS_MAX
    return int(text) if is_number else None


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _seconds(given: Mapping[str, str], name: str, default: float) -> float:
    text = given.get(name.lower())
    try:
        seconds = default if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= SECONDS_MAX:
        limits = f"above 0 and up to {SECONDS_MAX:,}"
        raise ConfigError(f"the option {name} is {text!r}: give seconds {limits}")
    return seconds


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.lower() not in {"true", "false"}:
        raise ConfigError(f"the option {name} is {text!r}: give true or false")
    return text.lower() == "true"


DIGITS_MAX = 19
"""Digits of numbers that may be too large for Spark's own, which have 64 bits."""
SHOWN_MAX = 40
"""Characters of a wrong value that a message shows."""
SECONDS_MAX = 1_000_000_000
"""More than any process lives, and what the sockets of the system can wait."""
NAMES = (
    *("path", "maxRowsPerBatch", "maxBytesPerBatch", "startingOffsets"),
    *("maxPartitions", "failOnDataLoss", "table"),
    *CONDITIONS,
)
TABLES = ("messages", "members")
"""What a journal has to read."""
SINK_NAMES = (
    *("group", "seeds", "preset", "spec", "bind", "port"),
    *("timeout", "idle", "minReceivers", "sort", "keyFile", "query", "epoch"),
)
SPARKS_OWN = ("checkpointLocation",)
"""What Spark hands on although it is meant for Spark itself."""
