"""`ringcast completion`: a script by which a shell completes commands and their options."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module

from ringcast.cli.main import COMMANDS

SHELLS = ("bash", "zsh", "fish")


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


def options() -> dict[str, list[tuple[str, str]]]:
    """The options of every command, each with its help."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, (module, _) in COMMANDS.items():
        parser = ArgumentParser(prog=name)
        import_module(module).add_arguments(parser)
        found[name] = [
            (option, (action.help or "") % {**vars(action), "prog": name})
            for action in parser._actions
            for option in action.option_strings
            if option.startswith("--") and action.help != "==SUPPRESS=="
        ]
    return found


def bash() -> str:
    """The script for bash."""
    cases = "\n".join(
        f'    {name}) words="{" ".join(option for option, _ in known)}" ;;'
        for name, known in options().items()
    )
    return f"""_ringcast() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  [ "$COMP_CWORD" = 1 ] && words="{" ".join(COMMANDS)} --help --version"
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "$words" -- "$current"))
       else COMPREPLY=($(compgen -f -- "$current")); fi ;;
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
    for name, known in options().items():
        used = f"'__fish_seen_subcommand_from {name}'"
        lines += [
            f"complete -c ringcast -n {used} -l {option[2:]} -d {_quoted(about)}"
            for option, about in known
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    flat = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{flat}'"
