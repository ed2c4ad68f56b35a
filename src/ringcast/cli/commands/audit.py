"""`ringcast audit`: the guarantees of a group, checked by Spark over the traces of its members."""

from __future__ import annotations

import json
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace

from ringcast.cli.numbers import SECONDS_MAX, number, whole
from ringcast.cli.stack import add_spec_arguments, chosen_spec
from ringcast.core.model.text import printable
from ringcast.errors import ConfigError, RingcastError
from ringcast.trace.rules import Rules, rules_of


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast audit`."""
    parser.description = (
        "Reads the traces that all members of a group wrote to a directory, checks every guarantee"
        "\nand measures the run. The exit status is 0 when all held, 1 when one was broken, and 2"
        "\nwhen there is nothing to audit."
    )
    parser.add_argument("directory", metavar="DIR", help="the directory of the traces")
    parser.add_argument("--report", metavar="FILE.html", help="write a page with plots")
    parser.add_argument(
        "--master", metavar="URL", help="a Spark cluster, spark://host:7077 (this machine)"
    )
    stack = parser.add_argument_group(
        "what the group promises; left out: all that a stack can promise"
    )
    add_spec_arguments(stack, "its settings say what is promised")
    stack.add_argument(
        "--capacity", type=whole, metavar="N", help="the window of the stack, to check that it held"
    )
    stack.add_argument(
        "--no-skips",
        action="store_true",
        help="the stack never skips messages: report each skipped message as a violation",
    )
    stack.add_argument(
        "--skew",
        type=number,
        default=0.0,
        metavar="SECONDS",
        help="how far the members' clocks may be apart, on several machines (%(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    following = parser.add_argument_group("while members still write")
    following.add_argument(
        "--follow",
        action="store_true",
        help="judge each view as soon as it is over, until Ctrl-C; --report loads itself again",
    )
    following.add_argument(
        "--grace",
        type=number,
        metavar="SECONDS",
        help="how long to wait for members of a view that others have left (30)",
    )
    following.add_argument(
        "--alarms",
        metavar="DIR",
        help="write violations and the figures of views there, and go on from there when run again",
    )
    following.add_argument(
        "--idle", type=number, metavar="SECONDS", help="end when nothing is new for this long"
    )


def run(arguments: Namespace) -> int:
    """Run it; 0 when every guarantee held, and 1 only when one was broken.

    Raises ConfigError for all that keeps it from a verdict.
    """
    if not arguments.directory:
        raise ConfigError("the directory of the traces is empty: name it")
    try:
        return _audit(arguments)
    except (ConfigError, BrokenPipeError, ModuleNotFoundError):
        raise
    except (RingcastError, OSError, MemoryError) as error:
        told = str(error) or "this machine has too little memory"
        raise ConfigError(f"there is no verdict: {told}") from error


def _audit(arguments: Namespace) -> int:
    if arguments.follow:
        return _follow(arguments)
    for name in ("grace", "alarms", "idle"):
        if getattr(arguments, name) is not None:
            raise ConfigError(f"--{name} is for a trace that is still written: add --follow")
    from ringcast.spark.audit.report_text import plain, table, verdict, violations
    from ringcast.spark.audit_directory import AuditRequest, audit_directory

    def say(line: str) -> None:
        print(printable(line), file=sys.stderr, flush=True)

    request = AuditRequest(
        directory=arguments.directory,
        page=arguments.report,
        master=arguments.master,
        rules=_rules(arguments),
    )
    report = audit_directory(request, say)
    if arguments.json:
        print(json.dumps(plain(report) | {"report": arguments.report}, indent=2, default=str))
    else:
        for name, value in table(report).items():
            print(f"{name + ':':<17}{printable(value)}")
        print(f"\n{verdict(report)}")
        for line in violations(report):
            print(f"  {printable(line)}")
        if arguments.report:
            print(f"The report, with plots: {arguments.report}")
    return 1 if report.counts else 0


def _follow(arguments: Namespace) -> int:
    """Follow a trace until a signal; 0 when every guarantee held so far."""
    from ringcast.spark.follow.run import FollowRequest, follow
    from ringcast.spark.follow.stream import GRACE

    idle = arguments.idle
    if idle is not None and not 0 < idle <= SECONDS_MAX:
        raise ConfigError(f"--idle is {idle:g}: give seconds above 0, up to {SECONDS_MAX:,}")
    stop = threading.Event()

    def end(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    def say(line: str) -> None:
        print(printable(line), file=sys.stderr if arguments.json else sys.stdout, flush=True)

    request = FollowRequest(
        directory=arguments.directory,
        alarms=arguments.alarms,
        page=arguments.report,
        master=arguments.master,
        grace=GRACE if arguments.grace is None else arguments.grace,
        idle=idle,
        rules=_rules(arguments),
    )
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_of_signal, end)
    outcome = follow(request, say, stop)
    if arguments.json:
        print(json.dumps(outcome.plain(), indent=2, default=str))
    else:
        print(outcome.verdict())
    return 1 if outcome.violations else 0


def _rules(arguments: Namespace) -> Rules:
    """What is owed: by the stack that is named, else by one that promises all; flags come last."""
    changed = arguments.added or arguments.dropped or arguments.settings
    named = arguments.preset or arguments.spec or changed
    rules = rules_of(chosen_spec(arguments, "lan")) if named else Rules()
    if not 0 <= arguments.skew <= SECONDS_MAX:
        limits = f"0 to {SECONDS_MAX:,} seconds"
        raise ConfigError(f"--skew is {arguments.skew:g}: give {limits}")
    if arguments.capacity is not None:
        if arguments.capacity < 1:
            raise ConfigError(f"--capacity is {arguments.capacity}: give at least 1")
        rules = rules._replace(capacity=arguments.capacity)
    if arguments.no_skips:
        rules = rules._replace(skips=False)
    return rules._replace(skew_us=round(arguments.skew * 1_000_000))
