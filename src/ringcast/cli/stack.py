"""The arguments by which commands choose a stack, and the stack that they mean."""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast.parts.discovery import ALONE
from ringcast.runtime.endpoints import split_endpoint
from ringcast.spec import StackSpec

if TYPE_CHECKING:
    from argparse import _ActionsContainer


def add_stack_arguments(parser: ArgumentParser) -> None:
    """The arguments of a real group, the same for every command."""
    stack = parser.add_argument_group("the stack; all members of a group need the same")
    add_spec_arguments(stack, "left out: tcp with --seeds, --dns, --file or --port, else loopback")
    stack.add_argument(
        "--seeds",
        metavar="HOST:PORT,…",
        help="where members are; one that answers is enough",
    )
    stack.add_argument(
        "--dns",
        metavar="NAME[:PORT]",
        help="a name whose addresses are all asked, say of a headless service; members listen at"
        f" PORT ({presets.PORT})",
    )
    stack.add_argument(
        "--file",
        metavar="DIR",
        help="a directory that all members can write to: each says there where it is",
    )
    stack.add_argument(
        "--alone",
        choices=ALONE,
        help="when nobody is found: found a group, wait, or fail; auto founds one where others look"
        " for it (auto)",
    )
    stack.add_argument(
        "--bind",
        metavar="HOST",
        help="this machine's address or interface (127.0.0.1: members on this machine only)",
    )
    stack.add_argument(
        "--port", type=int, metavar="N", help="this member's port, for others' --seeds (a free one)"
    )


def add_spec_arguments(group: _ActionsContainer, without: str) -> None:
    """The arguments that name a stack and change its settings; `without` says what it is else."""
    kind = group.add_mutually_exclusive_group()
    kind.add_argument("--preset", metavar="NAME", help=", ".join(presets.PRESETS) + f"; {without}")
    kind.add_argument(
        "--spec", metavar="FILE.toml", help="a stack of your own; `ringcast explain` writes one"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="PROTOCOL.SETTING=VALUE",
        help="change a setting, say NakAck4.capacity=1024; may be given several times",
    )


def chosen_stack(arguments: Namespace) -> StackSpec:
    """The stack that the arguments of a real group describe. Raises ConfigError."""
    for name in ("dns", "file"):
        if getattr(arguments, name) == "":
            raise ConfigError(f"--{name} is empty: give a value, or leave it out")
    dns, port = arguments.dns, arguments.port
    if dns:
        dns, listen_at = presets.with_port(dns, port or 0)
        port = listen_at if port is None else port
    given = {"seeds": _seeds(arguments.seeds), "dns": dns, "file": arguments.file}
    places = {name: value for name, value in given.items() if value}
    # Whoever names a place to be found at needs no multicast.
    is_named = places or arguments.port is not None
    spec = chosen_spec(arguments, "tcp" if is_named else "loopback")
    alone = arguments.alone or spec["Discovery"].values()["alone"]
    if places and not arguments.alone and alone == "found":
        alone = "auto"  # That was for a stack without anybody to ask.
    spec = spec.replace("Discovery", **places, alone=alone)
    bound = {"bind": arguments.bind, "port": port}
    settings = {name: value for name, value in bound.items() if value is not None}
    return spec.replace("transport", **settings) if settings else spec


def chosen_spec(arguments: Namespace, default: str) -> StackSpec:
    """The stack that --preset, --spec and --set name. Raises ConfigError."""
    if arguments.spec:
        spec = StackSpec.load(arguments.spec)
    else:
        spec = presets.named(arguments.preset or default)
    settings = {}
    for text in arguments.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set {text} has no value: write --set NakAck4.capacity=1024")
        settings[name.strip()] = _value(value.strip())
    return spec.with_settings(settings)


def _value(text: str) -> object:
    """A value as TOML writes it; what is none is a text, so that it needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _seeds(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    seeds = tuple(seed.strip() for seed in text.split(",") if seed.strip())
    for seed in seeds:
        split_endpoint(seed)
    if not seeds:
        raise ConfigError('--seeds is empty: give "host:port", several with commas between')
    return seeds
