"""The arguments by which commands choose a stack, and the stack that they mean."""

from __future__ import annotations

import sys
import tomllib
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringcast import presets
from ringcast.cli.numbers import seconds, whole
from ringcast.closed.keys import ENVIRONMENT
from ringcast.control.discovery import WHEN_ALONE
from ringcast.errors import ConfigError
from ringcast.protocols import Spec, find, named
from ringcast.runtime.api.base import JOIN_TIMEOUT
from ringcast.runtime.net.endpoints import split_endpoint
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
        help="endpoints of members; one that answers is enough",
    )
    stack.add_argument(
        "--dns",
        metavar="NAME[:PORT]",
        help="a name in DNS, for example of a headless service: all its addresses are asked;"
        f" members listen at PORT ({presets.PORT})",
    )
    stack.add_argument(
        "--file",
        metavar="DIR",
        help="a directory that all members can write to: each writes its endpoint there",
    )
    stack.add_argument(
        "--when-alone",
        choices=WHEN_ALONE,
        help="when no member is found: create a group, wait, or fail; auto creates one where others"
        " look for it (auto)",
    )
    stack.add_argument("--alone", action=_FormerAlone, dest="when_alone", help=SUPPRESS)
    stack.add_argument(
        "--bind",
        metavar="HOST",
        help="this machine's address or interface (127.0.0.1: members on this machine only)",
    )
    stack.add_argument(
        "--port",
        type=whole,
        metavar="N",
        help="this member's port, for others' --seeds (a free one)",
    )


class _FormerAlone(Action):
    """The former --alone: does what --when-alone does, and says so."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        choice = "create" if values == "found" else str(values)
        if choice not in WHEN_ALONE:
            parser.error(f"--alone is now --when-alone: give one of {', '.join(WHEN_ALONE)}")
        print(f"--alone is now --when-alone: write --when-alone {choice}", file=sys.stderr)
        namespace.when_alone = choice


def add_timeout_argument(parser: ArgumentParser) -> None:
    """How long a join may take."""
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=JOIN_TIMEOUT,
        metavar="SECONDS",
        help="give up when the group is not joined after this time (%(default)g)",
    )


def add_key_argument(parser: ArgumentParser) -> None:
    """The argument that makes the group a closed one."""
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        help="keys that make the group a closed one; see `ringcast keygen`"
        f" (${ENVIRONMENT}, else the group is open)",
    )


def add_spec_arguments(group: _ActionsContainer, without: str) -> None:
    """The arguments that name a stack and change its settings; `without` says what it is else."""
    kind = group.add_mutually_exclusive_group()
    kind.add_argument("--preset", metavar="NAME", help=", ".join(presets.PRESETS) + f"; {without}")
    kind.add_argument(
        "--spec", metavar="FILE.toml", help="a stack of your own; `ringcast explain` writes one"
    )
    add_change_arguments(group)


def add_change_arguments(group: _ActionsContainer) -> None:
    """The arguments that add protocols to a stack, leave some out, and change settings."""
    add_with_argument(group)
    group.add_argument(
        "--without",
        action="append",
        default=[],
        dest="dropped",
        metavar="PROTOCOL",
        help="leave a protocol out; may be given several times",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="PROTOCOL.SETTING=VALUE",
        help="change a setting, for example NakAck4.capacity=1024; may be given several times",
    )


def add_with_argument(group: _ActionsContainer) -> None:
    """The argument that adds protocols to a stack."""
    group.add_argument(
        "--with",
        action="append",
        default=[],
        dest="added",
        metavar="PROTOCOL[.SETTING=VALUE]",
        help="add a protocol, for example Sequencer or SlowMembers.policy=skip; may be given"
        " several times",
    )


def chosen_stack(arguments: Namespace) -> StackSpec:
    """The stack that the arguments of a real group describe. Raises ConfigError."""
    _refuse_empty(arguments, "dns", "file", "bind")
    dns, port = arguments.dns, arguments.port
    if dns:
        dns, listen_at = presets.with_port(dns, port or 0)
        port = listen_at if port is None else port
    given = {"seeds": _seeds(arguments.seeds), "dns": dns, "file": arguments.file}
    places = {name: value for name, value in given.items() if value}
    # A member with a way of discovery of its own needs no multicast.
    is_named = places or arguments.port is not None
    spec = chosen_spec(arguments, "tcp" if is_named else "loopback")
    choice = arguments.when_alone or spec["Discovery"].values()["when_alone"]
    if places and not arguments.when_alone and choice == "create":
        choice = "auto"  # That was for a stack without a place to ask.
    spec = spec.replace("Discovery", **places, when_alone=choice)
    bound = {"bind": arguments.bind, "port": port}
    settings = {name: value for name, value in bound.items() if value is not None}
    return spec.replace("transport", **settings) if settings else spec


def is_found_by_seeds_only(spec: StackSpec) -> bool:
    """Whether a member asks no place, so that others have to be told its endpoint."""
    ways = ("multicast", "seeds", "dns", "file", "methods")
    values = spec["Discovery"].values()
    return not any(values[way] for way in ways)


def chosen_spec(arguments: Namespace, default: str) -> StackSpec:
    """The stack that --preset, --spec, --without, --with and --set name. Raises ConfigError."""
    _refuse_empty(arguments, "preset", "spec")
    if arguments.spec:
        spec = StackSpec.load(arguments.spec)
    else:
        spec = presets.named(arguments.preset or default)
    return changed_spec(spec, arguments)


def changed_spec(spec: StackSpec, arguments: Namespace) -> StackSpec:
    """The stack as --without, --with and --set change it. Raises ConfigError."""
    if "" in arguments.dropped:
        raise ConfigError("--without is empty: name a protocol of the stack")
    settings = {}
    for text in arguments.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set {text} has no value: write --set NakAck4.capacity=1024")
        if name.strip() in settings:
            raise ConfigError(f"{name.strip()} is set twice: give one value")
        settings[name.strip()] = _value(value.strip())
    added = added_protocols(arguments.added, spec)
    return spec.changed(without=arguments.dropped, insert=added, settings=settings)


def _refuse_empty(arguments: Namespace, *names: str) -> None:
    """An empty value is a variable that is not set, and means nothing."""
    for name in names:
        if getattr(arguments, name) == "":
            raise ConfigError(f"--{name} is empty: give a value, or leave it out")


def added_protocols(texts: Sequence[str], spec: StackSpec) -> list[Spec]:
    """The protocols that --with names; one that the stack has already keeps its other settings.
    Raises ConfigError."""
    settings: dict[type[Spec], dict[str, object]] = {}
    for text in texts:
        full, equals, value = text.partition("=")
        name, dot, setting = full.strip().rpartition(".") if equals else (full.strip(), "", "")
        if not full.strip():
            raise ConfigError("--with is empty: name a protocol, for example Sequencer")
        if equals and not dot:
            raise ConfigError(f"--with {text} names no setting: write SlowMembers.policy=skip")
        if not equals and find(name.partition(".")[0]) and not find(name):
            raise ConfigError(f"--with {text} has no value: write --with {text}=VALUE")
        own = settings.setdefault(named(name), {})
        if equals:
            own[setting] = _value(value.strip())
    there = {type(protocol): protocol for protocol in spec}
    return [there.get(kind, kind()).changed(values) for kind, values in settings.items()]


def _value(text: str) -> object:
    """A value as TOML or Python writes it; what is none is a text, so that it needs no quotes."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
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
