"""`ringcast audit`: the guarantees of a group, checked by Spark over the traces of its members."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast audit`."""
    parser.description = (
        "Reads the traces that all members of a group wrote to a directory, checks every guarantee"
        "\nand measures the run. The exit status is 0 when all held, 1 when one was broken, and 2"
        "\nwhen there is nothing to audit."
    )
    parser.add_argument("directory", metavar="DIR", help="where the members traced to")
    parser.add_argument("--report", metavar="FILE.html", help="write a page with plots")
    parser.add_argument(
        "--master", metavar="URL", help="a Spark cluster, spark://host:7077 (this machine)"
    )
    parser.add_argument(
        "--capacity", type=int, metavar="N", help="the window of the stack, to check that it held"
    )
    parser.add_argument(
        "--no-skips",
        action="store_true",
        help="the stack gives no messages up: count those that were as broken",
    )
    parser.add_argument(
        "--skew",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how far the members' clocks may be apart, on several machines (%(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def run(arguments: Namespace) -> int:
    """Run it; 0 when every guarantee held."""
    from ringcast.demo.findings import plain, table, verdict, violations
    from ringcast.demo.traces import Request, audit_directory

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    request = Request(
        directory=arguments.directory,
        page=arguments.report,
        master=arguments.master,
        capacity=arguments.capacity,
        skips=not arguments.no_skips,
        skew_us=round(arguments.skew * 1_000_000),
    )
    report = audit_directory(request, say)
    if arguments.json:
        print(json.dumps(plain(report) | {"report": arguments.report}, indent=2, default=str))
    else:
        for name, value in table(report).items():
            print(f"{name + ':':<17}{value}")
        print(f"\n{verdict(report)}")
        for line in violations(report):
            print(f"  {line}")
        if arguments.report:
            print(f"The report, with plots: {arguments.report}")
    return 1 if report.counts else 0
