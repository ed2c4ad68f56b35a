"""`ringcast doctor`: why a group does not form."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections import Counter

from ringcast.cli.numbers import seconds
from ringcast.cli.stack import add_stack_arguments, chosen_stack
from ringcast.errors import ConfigError
from ringcast.runtime.diagnosis import TIMEOUT, diagnose
from ringcast.runtime.findings import Finding, Verdict
from ringcast.runtime.words import printable


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast doctor`."""
    parser.description = (
        "Looks at interfaces, routes, ports, socket buffers, multicast and seeds, and asks who is"
        "\nthere; give it what you give to `ringcast node`. Exit status 1 when a problem was found."
    )
    parser.add_argument("--group", metavar="GROUP", help="look for members of this group")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="SECONDS",
        help="how long to wait for answers (%(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    add_stack_arguments(parser)


def run(arguments: Namespace) -> int:
    """Look at everything; 1 when there is a problem."""
    if arguments.group == "":
        raise ConfigError("--group is empty: give the name of the group, or leave it out")
    findings: list[Finding] = []
    for finding in diagnose(chosen_stack(arguments), arguments.group, arguments.timeout):
        findings.append(finding)
        if not arguments.json:
            text = printable(finding.text)
            print(f"{finding.verdict.value:<8} {finding.topic:<10} {text}", flush=True)
    counts = Counter(finding.verdict for finding in findings)
    has_problem = counts[Verdict.PROBLEM] > 0
    if arguments.json:
        found = [{**vars(f), "verdict": f.verdict.value} for f in findings]
        print(json.dumps({"ok": not has_problem, "findings": found}, indent=2))
    else:
        print("; ".join(f"{verdict.value}: {counts[verdict]}" for verdict in Verdict))
    return 1 if has_problem else 0
