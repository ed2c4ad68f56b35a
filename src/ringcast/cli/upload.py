"""`ringcast upload`: the sealed segments of a journal go to an object store."""

from __future__ import annotations

import json
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace

from ringcast.cli.numbers import number
from ringcast.errors import ConfigError


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast upload`."""
    parser.description = (
        "Copies the sealed segments of a journal that an object store does not have yet, each as a"
        '\nwhole, so that format("ringcast") reads them there. It may run beside recorders and'
        "\nreaders. What was cut short is uploaded again. Nothing is removed from the store."
    )
    parser.add_argument("journal", metavar="DIR", help="the journal's directory")
    parser.add_argument(
        "url", metavar="URL", help="where to: s3://bucket/folder, gs://, abfs:// or hdfs://"
    )
    parser.add_argument("--follow", action="store_true", help="go on until Ctrl-C or SIGTERM")
    parser.add_argument(
        "--every",
        type=number,
        default=1.0,
        metavar="SECONDS",
        help="with --follow: how often to look for new segments (%(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per upload")


def run(arguments: Namespace) -> int:
    """Upload, once or until a signal comes."""
    from ringcast.journal.format.errors import JournalError
    from ringcast.journal.write.upload import Uploader
    from ringcast.trace.live import load_parquet

    if arguments.every <= 0:
        raise ConfigError(f"--every is {arguments.every:g}: give seconds above 0")
    load_parquet()
    stop = threading.Event()
    if arguments.follow:
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, lambda *_: stop.set())
    with Uploader.of(arguments.journal, arguments.url) as uploader:
        while True:
            try:
                done = uploader.run()
            except JournalError as error:
                if not arguments.follow:
                    raise
                print(f"ringcast upload: {error}", file=sys.stderr, flush=True)
            else:
                if arguments.json:
                    print(json.dumps(done._asdict()), flush=True)
                elif done.segments or not arguments.follow:
                    print(done, flush=True)
            if not arguments.follow or stop.wait(arguments.every):
                return 0
