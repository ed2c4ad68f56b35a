"""`ringcast keygen`: a key file for a closed group."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ringcast.closed.keys import generate
from ringcast.errors import ConfigError


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast keygen`."""
    parser.description = (
        "Writes a new key to FILE, which only its owner can read, and never overwrites one. Copy"
        "\nthe file to every member, and give it by --key-file, join(key_file=…) or"
        "\n$RINGCAST_KEY_FILE. To replace a key, add the line of the new one to all files, then"
        "\nmove it to the first line of all files, then remove the old line; members read their"
        "\nfiles anew by group.reload_keys(), and `ringcast node` at SIGHUP."
    )
    parser.add_argument("file", metavar="FILE", help="the file to write")


def run(arguments: Namespace) -> int:
    """Write the file."""
    if not arguments.file:
        raise ConfigError("FILE is empty: give the path of the file to write")
    key = generate(arguments.file)
    print(f"{arguments.file}: key id {key.id:02x}")
    return 0
