"""`ringcast doctor`: why a group does not form."""

from __future__ import annotations

import json
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator

from ringcast.cli.colour import GREEN, RED, YELLOW, paint
from ringcast.cli.numbers import seconds
from ringcast.cli.stack import add_key_argument, add_stack_arguments, chosen_stack
from ringcast.closed.keys import Keys, chosen_keys
from ringcast.core.model.text import printable
from ringcast.errors import ConfigError
from ringcast.runtime.doctor.diagnosis import TIMEOUT, diagnose
from ringcast.runtime.doctor.findings import DoctorFinding, Severity, ok, problem

COLOURS = {Severity.OK: GREEN, Severity.WARNING: YELLOW, Severity.PROBLEM: RED}


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast doctor`."""
    parser.description = (
        "Looks at interfaces, routes, ports, socket buffers, multicast and seeds, and looks for"
        "\nmembers. Give it the arguments of `ringcast node`. Exit status 1: a problem was found."
    )
    parser.add_argument(
        "group", metavar="GROUP", nargs="?", default=SUPPRESS, help="look for its members"
    )
    parser.add_argument("--group", metavar="GROUP", help="the same")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="SECONDS",
        help="how long to wait for answers (%(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    add_stack_arguments(parser)
    add_key_argument(parser)


def _findings(arguments: Namespace) -> Iterator[DoctorFinding]:
    keys: Keys = ()
    try:
        keys, path = chosen_keys(None, arguments.key_file)
        if keys:
            yield ok("key", f"{path} is a key file (key id {keys[0].id:02x})")
    except ConfigError as error:
        yield problem("key", str(error))
    yield from diagnose(chosen_stack(arguments), arguments.group, arguments.timeout, keys)


def run(arguments: Namespace) -> int:
    """Look at everything; 1 when there is a problem."""
    if arguments.group == "":
        raise ConfigError("the name of the group is empty: give it, or leave it out")
    findings: list[DoctorFinding] = []
    for finding in _findings(arguments):
        findings.append(finding)
        if not arguments.json:
            text = printable(finding.text)
            verdict = paint(f"{finding.verdict.value:<8}", COLOURS[finding.verdict])
            print(f"{verdict} {finding.topic:<10} {text}", flush=True)
    counts = Counter(finding.verdict for finding in findings)
    has_problem = counts[Severity.PROBLEM] > 0
    if arguments.json:
        found = [{**vars(f), "verdict": f.verdict.value} for f in findings]
        print(json.dumps({"ok": not has_problem, "findings": found}, indent=2))
    else:
        print("; ".join(f"{verdict.value}: {counts[verdict]}" for verdict in Severity))
    return 1 if has_problem else 0
