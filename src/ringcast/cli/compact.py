"""`ringcast compact`: many small files of a journal or of traces become few large ones."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.numbers import whole
from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from ringcast.journal.write.compact import Compacted
    from ringcast.trace.compaction.compact import CompactedTrace


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast compact`."""
    parser.description = (
        "Joins the small segments of a journal to large ones, and their manifests to one file, so"
        "\nthat it is opened and read quickly. It may run beside recorders, and beside readers with"
        '\nformat("ringcast"): a query goes on where it was. After a crash, run it again.'
        "\nOf traces it joins the files of each member, beside members that write."
    )
    parser.add_argument("journal", metavar="DIR", help="the directory of a journal or of traces")
    parser.add_argument(
        "--target-bytes",
        type=whole,
        default=128 * 2**20,
        metavar="N",
        help="how large the segments get, about (%(default)d)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: Namespace) -> int:
    """Compact, and say what was done."""
    from ringcast.journal.format.layout import Layout
    from ringcast.journal.write.compact import compact
    from ringcast.trace.compaction.compact import compact_traces, has_traces

    if not arguments.journal:
        raise ConfigError("the directory to compact is empty: name it")
    root = Path(arguments.journal)
    if root.is_dir() and not Layout(root).manifests.is_dir() and has_traces(root):
        joined = compact_traces(root, target_bytes=arguments.target_bytes)
        return _tell(arguments, joined, "files")
    done = compact(arguments.journal, target_bytes=arguments.target_bytes)
    return _tell(arguments, done, "segments")


def _tell(arguments: Namespace, done: Compacted | CompactedTrace, what: str) -> int:
    if arguments.json:
        print(json.dumps(done._asdict()))
    else:
        print(f"{done.before:,} {what} are now {done.after:,}: {done.rows:,} rows were moved.")
    return 0
