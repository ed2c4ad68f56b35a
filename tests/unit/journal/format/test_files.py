"""What others may have put into a journal's directory is refused in a sentence, at once."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ringcast.journal.format.checkpoint import lines_of, read_checkpoint
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.files import Files, read_whole
from ringcast.journal.format.layout import is_segment_name
from ringcast.journal.format.manifest import read_removed, read_segment

DEEP = "[" * 100_000 + "]" * 100_000


def put_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


FOREIGN = pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, put_device])
READERS = pytest.mark.parametrize(
    "read", [read_whole, lines_of, read_segment, read_removed, Files().open]
)


@FOREIGN
@READERS
def test_only_regular_files_are_read(
    tmp_path: Path, put: Callable[[Path], None], read: Callable[[Path], object]
) -> None:
    path = tmp_path / "there"
    put(path)
    with pytest.raises((JournalError, IsADirectoryError), match=r"regular file|[Dd]irectory"):
        read(path)


@pytest.mark.parametrize("new", [True, False])
def test_a_link_has_no_file_elsewhere_emptied(tmp_path: Path, new: bool) -> None:
    precious, link = tmp_path / "precious", tmp_path / ".lock"
    precious.write_text("precious")
    link.symlink_to(precious)
    with pytest.raises(OSError, match=r"symbolic|exists"):
        Files().create(link, new=new)
    assert precious.read_text() == "precious"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(JournalError, match="regular file of up to"):
        read_whole(path)


@pytest.mark.parametrize("text", [DEEP, '{"format":2,"names":' + DEEP + "}"])
def test_what_is_nested_beyond_measure_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep"
    path.write_text(text)
    for read in (read_segment, read_removed, lambda path: read_checkpoint(path, {})):
        with pytest.raises(JournalError, match="damaged or no manifest"):
            read(path)


def test_names_with_numbers_of_thousands_of_digits_are_none() -> None:
    name = "0123456789abcdef-g-"
    assert is_segment_name(name + "1" * 18)
    assert not is_segment_name(name + "1" * 5_000)
    assert not is_segment_name(name + "00000001to" + "1" * 5_000)
