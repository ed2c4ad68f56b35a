"""The commands with all of their arguments, from their parsers."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ringcast.cli.examples import EXAMPLES
from ringcast.cli.main import COMMANDS
from tools.reference.text import NOTE, cell, table

HEAD = f"""\
# Commands, all arguments

{NOTE}[The command line](../cli.md) shows the commands for groups with what they print.

## Exit status

| status | meaning |
| --- | --- |
| 0 | success; of commands that check something: every guarantee held |
| 1 | something went wrong, a check failed, or the reader of the output is gone |
| 2 | the arguments, or a file that they name, are wrong: nothing was started |
| 130 | interrupted (Ctrl-C) before the command could end in order |
"""


def page() -> str:
    """docs/reference/commands.md."""
    lines = [HEAD]
    for name, (module, summary) in COMMANDS.items():
        parser = ArgumentParser(prog=f"ringcast {name}", description=summary)
        import_module(module).add_arguments(parser)
        examples = ("```", *EXAMPLES[name], "```", "")
        lines += [f"## ringcast {name}", "", _sentence(summary), "", *examples, *_arguments(parser)]
        for what, inner in _inner(parser):
            lines += [f"### ringcast {name} {what}", "", *_arguments(inner)]
    return "\n".join(lines).rstrip() + "\n"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _arguments(parser: ArgumentParser) -> list[str]:
    rows = [_row(action, parser) for action in parser._actions if _is_shown(action)]
    return table(("argument", "meaning"), rows)


def _is_shown(action: Action) -> bool:
    is_help = action.dest == "help" or action.help == SUPPRESS
    return not is_help and not isinstance(action, _SubParsersAction)


def _row(action: Action, parser: ArgumentParser) -> tuple[str, str]:
    values = {**vars(action), "prog": parser.prog}
    about = (action.help or "") % values
    return f"`{_written(action)}`", cell(about)


def _written(action: Action) -> str:
    if action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        metavar: Any = action.metavar or action.dest.upper()
        value = metavar if isinstance(metavar, str) else " ".join(metavar)
    if not action.option_strings:
        return value
    flag = ", ".join(action.option_strings)
    return flag if action.nargs == 0 else f"{flag} {value}"


def _inner(parser: ArgumentParser) -> Iterator[tuple[str, ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            yield from action.choices.items()
