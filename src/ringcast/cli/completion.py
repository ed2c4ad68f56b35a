"""`ringcast completion`: a script by which a shell completes commands and their options."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace, _SubParsersAction
from importlib import import_module
from typing import NamedTuple

from ringcast import presets, protocols
from ringcast.cli.main import COMMANDS

SHELLS = ("bash", "zsh", "fish")
VALUES = {
    "--preset": list(presets.PRESETS),
    "--with": protocols.names(),
    "--without": protocols.names(),
}
"""What an option takes, where its parser does not list it."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast completion`."""
    parser.description = (
        "Prints a script that lets a shell complete the commands of ringcast and their options:"
        '\n\n  bash   eval "$(ringcast completion bash)"      in ~/.bashrc'
        '\n  zsh    eval "$(ringcast completion zsh)"       in ~/.zshrc, after compinit'
        "\n  fish   ringcast completion fish > ~/.config/fish/completions/ringcast.fish"
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments: Namespace) -> int:
    """Print the script."""
    scripts = {"bash": bash, "zsh": zsh, "fish": fish}
    print(scripts[arguments.shell](), end="")
    return 0


class CommandWords(NamedTuple):
    """What may follow a command."""

    options: list[tuple[str, str]]
    """Each with its help."""
    values: dict[str, list[str]]
    """The values of options that have a list of them."""
    first: list[str]
    """What may stand in place of a file: subcommands, presets, shells."""


def words(name: str) -> CommandWords:
    """What may follow this command."""
    parser = ArgumentParser(prog=name)
    import_module(COMMANDS[name][0]).add_arguments(parser)
    found = CommandWords([], {}, [])
    _add_words(parser, found)
    if name == "explain":
        found.first.extend([*presets.PRESETS, *protocols.names()])
    return found


def _add_words(parser: ArgumentParser, found: CommandWords) -> None:
    """The words of a parser, and of its subcommands."""
    for action in parser._actions:
        choices = list(action.choices or ())
        if not action.option_strings:
            found.first.extend(choices)
        for inner in action.choices.values() if isinstance(action, _SubParsersAction) else ():
            _add_words(inner, found)
        if action.help == SUPPRESS:
            continue
        known = {option for option, _ in found.options}
        about = (action.help or "") % {**vars(action), "prog": parser.prog}
        for option in action.option_strings:
            if option.startswith("--") and option not in known:
                found.options.append((option, about))
                if values := VALUES.get(option, choices):
                    found.values[option] = values


def bash() -> str:
    """The script for bash."""
    cases, values = [], {}
    for name in COMMANDS:
        known = words(name)
        options = " ".join(option for option, _ in known.options)
        cases.append(f'    {name}) words="{options}" first="{" ".join(known.first)}" ;;')
        for option, choices in known.values.items():
            values[f"{name}:{option}"] = " ".join(map(str, choices))
    lines = "\n".join(f'    {place}) values="{choices}" ;;' for place, choices in values.items())
    commands = "\n".join(cases)
    return f"""_ringcast() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="" first="" values=""
  case "${{COMP_WORDS[1]}}" in
{commands}
  esac
  case "${{COMP_WORDS[1]}}:${{COMP_WORDS[COMP_CWORD-1]}}" in
{lines}
  esac
  [ "$COMP_CWORD" = 1 ] && words="{" ".join(COMMANDS)} --help --version" first="$words"
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) if [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$current"))
       elif [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "$first" -- "$current"))
       else COMPREPLY=($(compgen -W "$first" -- "$current") $(compgen -f -- "$current")); fi ;;
  esac
}}
complete -F _ringcast ringcast
"""


def zsh() -> str:
    """The script for zsh: bash's, by its own means."""
    return f"autoload -Uz bashcompinit && bashcompinit\n{bash()}"


def fish() -> str:
    """The script for fish."""
    first = "__fish_use_subcommand"
    lines = [
        f"complete -c ringcast -n {first} -f -a {name} -d {_quoted(summary)}"
        for name, (_, summary) in COMMANDS.items()
    ]
    for name in COMMANDS:
        known = words(name)
        used = f"complete -c ringcast -n '__fish_seen_subcommand_from {name}'"
        if known.first:
            lines.append(f"{used} -a {_quoted(' '.join(known.first))}")
        for option, about in known.options:
            choices = known.values.get(option)
            values = f" -x -a {_quoted(' '.join(map(str, choices)))}" if choices else ""
            lines.append(f"{used} -l {option[2:]} -d {_quoted(about)}{values}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    flat = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{flat}'"
