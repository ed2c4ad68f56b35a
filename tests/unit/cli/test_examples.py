"""The examples at the end of each help text are commands that can be parsed."""

import shlex
from argparse import ArgumentParser
from importlib import import_module

import pytest

from ringcast.cli.examples import EXAMPLES
from ringcast.cli.main import COMMANDS, main

WRITTEN = [example for examples in EXAMPLES.values() for example in examples]


def test_every_command_has_an_example() -> None:
    assert list(EXAMPLES) == list(COMMANDS)


@pytest.mark.parametrize("example", WRITTEN)
def test_an_example_has_arguments_that_exist(example: str) -> None:
    program, name, *words = shlex.split(example)
    assert program == "ringcast"
    assert example in EXAMPLES[name]
    parser = ArgumentParser(exit_on_error=False)
    import_module(COMMANDS[name][0]).add_arguments(parser)
    assert vars(parser.parse_args(words))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_its_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    printed = capsys.readouterr().out
    assert printed.endswith("".join(f"  {example}\n" for example in EXAMPLES[name]))


def test_the_help_of_all_commands_says_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "ringcast node chat --name ann" in capsys.readouterr().out


def options_without_a_default(name: str) -> list[str]:
    """Options with a number whose help does not say what happens without them."""
    parser = ArgumentParser()
    import_module(COMMANDS[name][0]).add_arguments(parser)
    return [
        action.option_strings[0]
        for action in parser._actions
        if isinstance(action.default, int | float)
        and not isinstance(action.default, bool)
        and action.option_strings
        and "(" not in str(action.help)
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_number_has_its_default_in_the_help(name: str) -> None:
    assert options_without_a_default(name) == []
