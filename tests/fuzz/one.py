"""Fuzzes one target, led by the coverage of Ringcast's code: `python -m tests.fuzz.one NAME …`.

The rest of the command line is for libFuzzer.
"""

import logging
import sys

import atheris

with atheris.instrument_imports(include=["ringcast"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Run until the time is over, or until an input breaks the target."""
    logging.disable()
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
