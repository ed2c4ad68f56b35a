"""The checksum of a trace file: in its name, so that it stays with the file wherever that goes.

Page checksums are in the file as well. They protect what a page contains, but neither the headers
of pages nor the footer of the file, in which a flipped bit can turn data into other data.
"""

from __future__ import annotations

import re
import zlib
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BLOCK = 1 << 20
NAMED = re.compile(r"[0-9a-f]{16}-[0-9]{6,18}(?:to[0-9]{6,18})?-([0-9a-f]{8})\.parquet")


class SummedFile(FileIO):
    """A file that sums up what is written to it, from its beginning to its end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self.checksum = 0

    def write(self, data: ReadableBuffer) -> int:
        """Write all of it."""
        rest = memoryview(data).cast("B")
        self.checksum = zlib.crc32(rest, self.checksum)
        whole = len(rest)
        while rest:
            rest = rest[super().write(rest) :]
        return whole


def trace_name(member: int, number: int, checksum: int) -> str:
    """The name of a file of a trace, with the checksum of its bytes."""
    return f"{member:016x}-{number:06d}-{checksum:08x}.parquet"


def is_damaged(file: Path) -> bool:
    """Tell whether a file's bytes differ from what its name says; other names say nothing.

    What is not a regular file counts as damaged: a pipe would have its reader wait for ever.
    """
    if file.exists() and not file.is_file():
        return True
    named = NAMED.fullmatch(file.name)
    if named is None:
        return False
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum != int(named[1], 16)


def damage(file: Path) -> ConfigError:
    """What to raise for a damaged file."""
    return ConfigError(f"{file} is damaged: restore it, or move it away to audit the other traces.")
