"""`ringcast`: finds the command, parses its arguments, says in a sentence what is wrong."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from typing import NoReturn, Protocol, cast

from ringcast.cli.examples import epilog
from ringcast.cli.refusal import with_remedy
from ringcast.errors import ConfigError, JoinFailed, RingcastError, did_you_mean

COMMANDS = {
    "node": (
        "ringcast.cli.commands.node",
        "one member: sends the lines it reads, prints what arrives",
    ),
    "top": (
        "ringcast.cli.commands.top",
        "the whole group in the terminal: rates, windows, which member waits for which",
    ),
    "ui": ("ringcast.cli.commands.ui", "the same in a web page"),
    "status": (
        "ringcast.cli.commands.status",
        "members on this machine: view, windows, blocked senders",
    ),
    "stability": (
        "ringcast.cli.stability",
        "starts a round of stability: what all members have delivered",
    ),
    "doctor": ("ringcast.cli.commands.doctor", "finds out why a group does not form"),
    "explain": (
        "ringcast.cli.commands.explain",
        "a stack with every value, its unit and its reason",
    ),
    "keygen": ("ringcast.cli.commands.keygen", "writes a key file for a closed group"),
    "record": ("ringcast.cli.commands.record", "a member that writes a durable journal"),
    "compact": (
        "ringcast.cli.compact",
        "joins the small files of a journal, or of traces, to large ones",
    ),
    "upload": ("ringcast.cli.upload", "copies a journal's segments to an object store"),
    "audit": (
        "ringcast.cli.commands.audit",
        "checks every guarantee over recorded traces, with Spark",
    ),
    "sim": (
        "ringcast.cli.commands.sim",
        "one simulated run, with figures and a check of every guarantee",
    ),
    "swarm": (
        "ringcast.cli.commands.swarm",
        "many simulated runs with random stacks, networks and faults",
    ),
    "sweep": (
        "ringcast.cli.commands.sweep",
        "the best settings in a grid of simulations, with Spark",
    ),
    "demo": (
        "ringcast.cli.commands.demo",
        "a real group under faults, recorded, then audited by Spark",
    ),
    "soak": (
        "ringcast.cli.commands.soak",
        "a real group under load and faults for minutes, watched",
    ),
    "bench": (
        "ringcast.cli.commands.bench",
        "throughput and latency beside bare sockets and other systems",
    ),
    "completion": ("ringcast.cli.completion", "completion for bash, zsh and fish"),
}
"""Each command with its module, which is imported only when the command is run."""


EXTRAS = {
    "pyarrow": "journal",
    "pyspark": "spark",
    "pandas": "spark",
    "cryptography": "closed",
}
"""Packages that a command may miss, and the extra of Ringcast that brings each."""


BEGIN = """\
begin in two terminals:
  ringcast node chat --name ann
  ringcast node chat --name bob

`ringcast COMMAND --help` has the arguments of a command, with defaults and examples."""
"""The end of `ringcast --help`."""


class Command(Protocol):
    """What the module of a command has."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Say which arguments there are."""
        ...

    def run(self, arguments: Namespace) -> int:
        """Do it; returns the exit status."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 on success only, 2 for wrong arguments."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if not word.startswith("-")), None)
    name = chosen or "command"
    _open_missing_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # What the terminal's encoding lacks is escaped.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            _show_former_names(name)
            status = _run(words, chosen)
        sys.stdout.flush()  # A closed pipe is noticed here, and not while Python ends.
        return status
    except ConfigError as error:
        return _fail(name, error, 2)
    except JoinFailed as error:
        return _fail(name, with_remedy(str(error)), 1)
    except RingcastError as error:
        return _fail(name, error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # The reader of the output has enough: not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # What no command foresaw: a disk that is full, a name too long.
        text = error.strerror or str(error)
        return _fail(name, f"{error.filename}: {text}" if error.filename else text, 1)
    except UnicodeEncodeError as error:  # A byte of an argument that is not UTF-8.
        text = error.object[max(0, error.start - 30) : error.end + 30]
        return _fail(name, f"{text!r} is not Unicode: write it in UTF-8", 2)
    except MemoryError:
        return _fail(name, "this machine has too little memory for that: ask for less", 1)
    except ModuleNotFoundError as error:
        if (extra := EXTRAS.get((error.name or "").partition(".")[0])) is None:
            raise
        sentence = f"{error.name} is not installed: run `pip install 'ringcast[{extra}]'`"
        return _fail(name, sentence, 2)


def _open_missing_streams() -> None:
    """Put an empty stream in place of each standard stream that was closed before the start.

    No command has to look for it then, and no socket gets its descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _show_former_names(command: str) -> None:
    """Print each warning of a former name once; Python itself shows them to programs only."""
    shown = set[str]()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            _fail(command, str(message), 0)

    warnings.filterwarnings("always", ".* is now ", DeprecationWarning)
    warnings.showwarning = show


def _run(words: Sequence[str], chosen: str | None) -> int:
    """Parse the words, and run the command that they choose."""
    parser = _Parser(
        prog="ringcast",
        description="Reliable group messaging without a broker.",
        epilog=BEGIN,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ringcast {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=epilog(name),
            formatter_class=RawDescriptionHelpFormatter,
        )
        if name == chosen:
            _load(module).add_arguments(command)
    if chosen is not None and chosen not in COMMANDS:
        names = ", ".join(COMMANDS) + did_you_mean(chosen, COMMANDS)
        parser.error(f"unknown command {chosen}: choose one of {names}")
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        _refuse(commands.choices[parsed.command], unknown)
    return _load(COMMANDS[parsed.command][0]).run(parsed)


def _refuse(parser: ArgumentParser, unknown: Sequence[str]) -> NoReturn:
    """Name the arguments that a command does not have, and the option that the first may mean."""
    options = [option for action in parser._actions for option in action.option_strings]
    first = unknown[0].partition("=")[0]
    hint = did_you_mean(first, options) if first.startswith("-") else ""
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _load(module: str) -> Command:
    return cast(Command, import_module(module))


def _version() -> str:
    try:
        return version("ringcast")
    except PackageNotFoundError:
        return "(run from its source, not installed)"


def _fail(command: str, error: Exception | str, status: int) -> int:
    from ringcast.core.model.text import printable

    _tell(f"ringcast {command}: {printable(str(error))}")
    return status


def _tell(sentence: str) -> None:
    """Write to standard error; when it is closed, the exit status says enough."""
    with suppress(OSError):
        print(sentence, file=sys.stderr)


class _Parser(ArgumentParser):
    """Says what is wrong in one sentence, without the usage around it."""

    def error(self, message: str) -> NoReturn:
        _tell(f"{self.prog}: {message}; see {self.prog} --help")
        sys.exit(2)


if __name__ == "__main__":
    sys.exit(main())
