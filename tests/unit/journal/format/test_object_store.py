"""What a journal asks of an object store: whole objects, listings, and sentences when it fails."""

from pathlib import Path

import pytest
from pyarrow import fs

from ringcast.errors import ConfigError
from ringcast.journal import JournalError
from ringcast.journal.format.object_store import ObjectStore


def test_objects_are_written_read_listed_and_deleted(tmp_path: Path) -> None:
    store = ObjectStore((tmp_path / "a b").as_uri())
    assert store.names() == {}
    store.write("one", b"1")
    store.write("below/two", b"22")
    store.write("one", b"111")
    assert {name: found.size for name, found in store.names().items()} == {"one": 3}
    assert {name: found.size for name, found in store.names("below").items()} == {"two": 2}
    assert (store.read("one"), store.open("below/two").read()) == (b"111", b"22")
    store.delete("one")
    store.delete("one")
    with pytest.raises(FileNotFoundError):
        store.read("one")


def test_a_file_that_is_being_written_is_not_listed(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path.as_uri())
    (tmp_path / ".one.tmp").write_bytes(b"half")
    assert store.names() == {}


def test_an_upload_of_which_bytes_are_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(tmp_path.as_uri())

    monkeypatch.setattr(store, "_files", Lying(fs.LocalFileSystem()))
    with pytest.raises(JournalError, match=r"one cannot be written: 1 of 3 bytes arrived"):
        store.write("one", b"111")
    assert store.names() == {}


class Lying:
    """A file system that lost the end of what it was given."""

    type_name = "local"

    def __init__(self, files: fs.FileSystem) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def get_file_info(self, place: str | fs.FileSelector) -> object:
        if isinstance(place, fs.FileSelector):
            return self._files.get_file_info(place)
        (found,) = self._files.get_file_info([place])
        return fs.FileInfo(found.path, found.type, size=1)


@pytest.mark.parametrize("url", ["journal/", "ftp://me:secret@host/journal", "s3://", "://"])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(
        ConfigError, match=r"is not an address of a store|names no folder"
    ) as caught:
        ObjectStore(url)
    assert "secret" not in str(caught.value)


def test_a_store_that_is_not_reached_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(tmp_path.as_uri())
    monkeypatch.setattr(store, "_files", Gone())
    with pytest.raises(JournalError, match=r"one cannot be read: no route; try again when"):
        store.read("one")


class Gone:
    """A file system that is not reached."""

    def open_input_stream(self, place: str) -> object:
        raise OSError("no route")
