"""`ringcast ui`: the whole group in a web page."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser, Namespace

from ringcast.cli.numbers import port
from ringcast.cli.observer import add_observer_arguments, join_as_observer
from ringcast.runtime.live.server import LivePage
from ringcast.runtime.live.watch import GroupWatch


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast ui`."""
    parser.description = (
        "Joins the group as a member that sends and reads nothing, and serves a page that shows all"
        "\nmembers: rates, windows, which member waits for which, losses, and views with their"
        "\nreasons. The page needs nothing from elsewhere and changes nothing. Its data is at"
        "\n/group.json."
    )
    add_observer_arguments(parser)
    page = parser.add_argument_group("the page")
    page.add_argument(
        "--at", default="127.0.0.1", metavar="HOST", help="the address to serve it at (%(default)s)"
    )
    page.add_argument(
        "--page-port",
        type=port,
        default=7890,
        metavar="N",
        help="its port (%(default)s); 0: a free one",
    )


def run(arguments: Namespace) -> int:
    """Serve the page until a signal comes."""
    stop = threading.Event()
    with join_as_observer(arguments) as group:  # Until it has joined, a signal ends it at once.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        page = LivePage(arguments.at, arguments.page_port, GroupWatch(group).look)
        try:
            print(f"the group {arguments.group} is at http://{page.endpoint}/", flush=True)
            stop.wait()
        finally:
            page.close()
    return 0
