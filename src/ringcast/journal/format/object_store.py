"""A directory of an object store by its address: what a journal needs of it, and no more.

Any file system of pyarrow will do: s3://, gs://, abfs://, hdfs://, file://. An object is there as a
whole or not at all: stores give that, and on a file system a hidden name does until all is written.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from ringcast.errors import ConfigError
from ringcast.journal.format.errors import JournalError

MANIFESTS = "_manifest"
REFUSED = (pa.ArrowException, OSError)
"""What pyarrow raises when a store refuses something, or is not reached."""
RENAMING = ("local", "hdfs", "subtree")
"""Kinds of stores in which a file is seen while it is written."""


class StoredObject(NamedTuple):
    """What a listing says of an object."""

    size: int
    changed: float
    """When it was written, in seconds since 1970."""


class ObjectStore:
    """One directory. Raises ConfigError for an address that cannot be used, JournalError later."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        address = "s3" + self.url[3:] if self.url.startswith("s3a://") else self.url
        try:
            self._files, root = fs.FileSystem.from_uri(address)
        except (*REFUSED, ValueError, TypeError) as error:
            said = _said(error).replace(address, shown(address))
            raise ConfigError(
                f"{shown(url)} is not an address of a store: {said}. Give s3://bucket/folder, "
                "gs://, abfs:// or hdfs://"
            ) from None
        self._root = root.rstrip("/")
        if not self._root:
            raise ConfigError(f"{shown(url)} names no folder of a store: give s3://bucket/folder")

    def address(self, name: str) -> str:
        """The address of an object, for messages."""
        return f"{shown(self.url)}/{name}"

    def names(self, folder: str = "") -> dict[str, StoredObject]:
        """The objects in a folder, without those in folders below it; {} when there is none."""
        place = self._place(folder)
        with self._told("listed", folder):
            found = self._files.get_file_info(fs.FileSelector(place, allow_not_found=True))
        return {
            info.base_name: StoredObject(info.size or 0, (info.mtime_ns or 0) / 1e9)
            for info in found
            if info.type == fs.FileType.File and not info.base_name.startswith(".")
        }

    def read(self, name: str) -> bytes:
        """All of an object. Raises FileNotFoundError when it is not there."""
        with self._told("read", name), self._files.open_input_stream(self._place(name)) as stream:
            return bytes(stream.read())

    def open(self, name: str) -> pa.NativeFile:
        """An object, to read parts of it. Raises FileNotFoundError when it is not there."""
        with self._told("read", name):
            return self._files.open_input_file(self._place(name))

    def write(self, name: str, data: bytes) -> None:
        """Write an object, in place of any that had this name."""
        final = self._place(name)
        renames = self._files.type_name in RENAMING
        folder, base = posixpath.split(final)
        draft = f"{folder}/.{base}.tmp" if renames else final
        with self._told("written", name):
            if renames:
                self._files.create_dir(folder, recursive=True)
            with self._files.open_output_stream(draft) as stream:
                stream.write(data)
            size = self._files.get_file_info(draft).size
            if size != len(data):
                raise OSError(f"{size} of {len(data)} bytes arrived")
            if renames:
                self._files.move(draft, final)

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is fine."""
        with self._told("removed", name):
            try:
                self._files.delete_file(self._place(name))
            except FileNotFoundError:
                return

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _told(self, done: str, name: str) -> Iterator[None]:
        """Turn what the store says into an error of the journal."""
        try:
            yield
        except FileNotFoundError:
            raise
        except REFUSED as error:
            raise JournalError(
                f"{self.address(name)} cannot be {done}: {_said(error)}; try again when the store"
                " is reached"
            ) from error


@cache
def store_at(url: str) -> ObjectStore:
    """The store of an address: one per process, since connecting takes time."""
    return ObjectStore(url)


def shown(url: str) -> str:
    """An address without its settings and secrets, for messages."""
    place = url.partition("?")[0]
    scheme, separator, rest = place.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _said(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
