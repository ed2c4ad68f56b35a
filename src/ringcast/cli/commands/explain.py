"""`ringcast explain`: what a stack consists of, value by value."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from functools import partial

from ringcast import presets, protocols
from ringcast.cli.stack import add_change_arguments, changed_spec
from ringcast.errors import ConfigError
from ringcast.explain import explain, explain_protocol, protocol_text, to_data, to_text, to_toml


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast explain`."""
    names = ", ".join(presets.PRESETS)
    parser.add_argument(
        "stack",
        metavar="PRESET|PROTOCOL|FILE.toml",
        help=f"{names}; a protocol, for example NakAck4; or a TOML file with a stack of your own",
    )
    add_change_arguments(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    output.add_argument(
        "--toml", action="store_true", help="print a file to change and to use with --spec"
    )


def run(arguments: Namespace) -> int:
    """Explain it."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    kind = None if arguments.stack in presets.PRESETS else protocols.find(arguments.stack)
    is_changed = bool(arguments.added or arguments.dropped or arguments.settings)
    if kind is not None and is_changed:
        raise ConfigError(
            f"--with, --without and --set change a stack, and {arguments.stack} is a protocol:"
            " give a preset or FILE.toml"
        )
    if kind is not None and not arguments.toml:
        protocol = explain_protocol(kind)
        text = protocol_text(protocol, width)
        print(json.dumps(asdict(protocol), indent=2) if arguments.json else text)
        return 0
    change = partial(changed_spec, arguments=arguments) if is_changed else None
    explanation = explain(arguments.stack, change)
    if arguments.json:
        print(json.dumps(to_data(explanation), indent=2))
    elif arguments.toml:
        print(to_toml(explanation), end="")
    else:
        print(to_text(explanation, width))
    return 0
