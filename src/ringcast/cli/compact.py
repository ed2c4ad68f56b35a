"""`ringcast compact`: many small files of a journal become few large ones."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast compact`."""
    parser.description = (
        "Joins the small segments of a journal to large ones, and their manifests to one file, so"
        "\nthat it is opened and read quickly. It may run beside recorders, and beside readers with"
        '\nformat("ringcast"): a query goes on where it was. After a crash, run it again.'
    )
    parser.add_argument("journal", metavar="DIR", help="the journal's directory")
    parser.add_argument(
        "--target-bytes",
        type=int,
        default=128 * 2**20,
        metavar="N",
        help="how large the segments get, about (%(default)d)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: Namespace) -> int:
    """Compact, and say what was done."""
    from ringcast.journal.write.compact import compact

    done = compact(arguments.journal, target_bytes=arguments.target_bytes)
    if arguments.json:
        print(json.dumps(done._asdict()))
    else:
        print(f"{done.before:,} segments are now {done.after:,}: {done.rows:,} rows were moved.")
    return 0
