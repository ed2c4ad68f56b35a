"""The arguments by which the commands of a real group choose its stack, and the stack they mean."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ringcast import presets
from ringcast.errors import ConfigError
from ringcast.runtime.endpoints import split_endpoint
from ringcast.spec import StackSpec


def add_stack_arguments(parser: ArgumentParser) -> None:
    """The arguments, the same for every command."""
    stack = parser.add_argument_group("the stack; all members of a group need the same")
    kind = stack.add_mutually_exclusive_group()
    kind.add_argument(
        "--preset",
        metavar="NAME",
        help=", ".join(presets.PRESETS) + "; left out: tcp with --seeds or --port, else loopback",
    )
    kind.add_argument(
        "--spec", metavar="FILE.toml", help="a stack of your own; `ringcast explain` writes one"
    )
    stack.add_argument(
        "--seeds",
        metavar="HOST:PORT,…",
        help="where members are; one that answers is enough",
    )
    stack.add_argument(
        "--bind",
        metavar="HOST",
        help="this machine's address or interface (127.0.0.1: members on this machine only)",
    )
    stack.add_argument(
        "--port", type=int, metavar="N", help="this member's port, for others' --seeds (a free one)"
    )


def chosen_stack(arguments: Namespace) -> StackSpec:
    """The stack that the arguments describe. Raises ConfigError."""
    seeds = _seeds(arguments.seeds)
    if arguments.spec:
        spec = StackSpec.load(arguments.spec)
    else:
        spec = _preset(_preset_name(arguments), seeds)
    if seeds:
        spec = spec.replace("Discovery", seeds=seeds)
    given = {"bind": arguments.bind, "port": arguments.port}
    settings = {name: value for name, value in given.items() if value is not None}
    return spec.replace("transport", **settings) if settings else spec


def _preset_name(arguments: Namespace) -> str:
    if arguments.preset:
        return str(arguments.preset)
    # Whoever names a port or a seed wants to be found there, which needs no multicast.
    named = arguments.seeds or arguments.port is not None
    return "tcp" if named else "loopback"


def _preset(name: str, seeds: tuple[str, ...]) -> StackSpec:
    if name not in presets.PRESETS:
        raise ConfigError(f"there is no preset {name}: there are {', '.join(presets.PRESETS)}")
    # With seeds it waits for them, and without it founds a group.
    return presets.tcp(seeds=seeds) if name == "tcp" else presets.PRESETS[name]()


def _seeds(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    seeds = tuple(seed.strip() for seed in text.split(",") if seed.strip())
    for seed in seeds:
        split_endpoint(seed)
    if not seeds:
        raise ConfigError('--seeds is empty: give "host:port", several with commas between')
    return seeds
