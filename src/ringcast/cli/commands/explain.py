"""`ringcast explain`: what a stack consists of, value by value."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ringcast import presets, protocols
from ringcast.explain import explain, explain_protocol, protocol_text, to_data, to_text, to_toml


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast explain`."""
    names = ", ".join(presets.PRESETS)
    parser.add_argument(
        "stack",
        metavar="PRESET|PROTOCOL|FILE.toml",
        help=f"{names}; a protocol, for example NakAck4; or a TOML file with a stack of your own",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    output.add_argument(
        "--toml", action="store_true", help="print a file to change and to use with --spec"
    )


def run(arguments: Namespace) -> int:
    """Explain it."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    kind = None if arguments.stack in presets.PRESETS else protocols.find(arguments.stack)
    if kind is not None and not arguments.toml:
        protocol = explain_protocol(kind)
        text = protocol_text(protocol, width)
        print(json.dumps(asdict(protocol), indent=2) if arguments.json else text)
        return 0
    explanation = explain(arguments.stack)
    if arguments.json:
        print(json.dumps(to_data(explanation), indent=2))
    elif arguments.toml:
        print(to_toml(explanation), end="")
    else:
        print(to_text(explanation, width))
    return 0
