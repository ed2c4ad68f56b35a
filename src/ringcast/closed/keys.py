"""Keys of closed groups: in memory, in key files, and what is derived from them.

A key file has one key per line, as 64 hexadecimal digits, and comments behind "#". The first key
seals, and all of them open, so that a key is replaced without a pause: add the new key behind the
old one everywhere, move it to the front everywhere, then remove the old one everywhere.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ringcast.closed.derivation import expand, extract
from ringcast.errors import ConfigError

KEY_SIZE = 32
KEYS_MAX = 16
"""Keys in one file."""
FILE_SIZE_MAX = 65_536
ENVIRONMENT = "RINGCAST_KEY_FILE"
"""The environment variable that names the key file where no argument does."""


class Key:
    """One key of a group. It shows its id, and never itself."""

    __slots__ = ("_secret", "id")

    def __init__(self, key: bytes) -> None:
        """Raises ConfigError, without the key in its text."""
        if not isinstance(key, bytes | bytearray | memoryview):
            raise ConfigError(f"key is of type {type(key).__name__}: give {KEY_SIZE} bytes")
        if len(key) != KEY_SIZE:
            raise ConfigError(
                f"a key has {len(key)} bytes: give {KEY_SIZE} random ones,"
                " say those of `ringcast keygen`"
            )
        self._secret = extract(bytes(key))
        self.id = expand(self._secret, "key id")[0]
        """8 bits by which people tell keys apart."""

    def derive(self, purpose: str, *context: bytes) -> bytes:
        """32 bytes for one purpose."""
        return expand(self._secret, purpose, *context)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Key(id={self.id:02x})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not written anywhere: hand on the name of its file")


Keys = Sequence[Key]
"""The first one seals, all of them open."""


def chosen_keys(
    key: bytes | None, key_file: str | os.PathLike[str] | None
) -> tuple[Keys, Path | None]:
    """The keys that a caller chose, and their file; none for an open group. Raises ConfigError."""
    if key is not None and key_file is not None:
        raise ConfigError("key and key_file are both given: give one of them")
    if key is not None:
        return (Key(key),), None
    if key_file is None and not (key_file := os.environ.get(ENVIRONMENT)):
        return (), None
    if not isinstance(key_file, str | os.PathLike):
        raise ConfigError(f"key_file is {key_file!r}: give the path of a file")
    if not os.fspath(key_file):
        raise ConfigError("key_file is empty: give the path of a file, or leave it out")
    path = Path(key_file)
    return load_keys(path), path


def load_keys(path: str | os.PathLike[str]) -> Keys:
    """The keys of a file. Raises ConfigError, also when other users can read the file."""
    try:
        with open(path, "rb", opener=_open_regular) as file:
            return parse_keys(_read(file, path), path)
    except OSError as error:
        raise ConfigError(f"cannot read the key file {path}: {error.strerror}") from None
    except ConfigError:
        raise
    except ValueError:  # A character that no name of a file has.
        raise ConfigError(f"{os.fspath(path)!r} is not the path of a key file") from None


def _read(file: BinaryIO, path: str | os.PathLike[str]) -> bytes:
    """The content of a key file that only its owner can read. Raises ConfigError, OSError.

    A file of root may be read by its group, which is how Kubernetes mounts secrets for a pod that
    does not run as root.
    """
    found = os.fstat(file.fileno())
    refused = stat.S_IRWXG | stat.S_IRWXO
    if found.st_uid == 0 and os.geteuid() != 0:
        refused &= ~stat.S_IRGRP
    if found.st_mode & refused:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigError(
            f"the key file {path} has mode {mode:04o}, so that other users can use it:"
            f" run `chmod 600 {path}`, and replace its keys if others may have read them"
        )
    return file.read(FILE_SIZE_MAX + 1)


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file, and nothing that a read could wait for. Raises ConfigError."""
    fd = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ConfigError(f"the key file {path} is not a regular file: give another")
    return fd


def parse_keys(content: bytes, path: str | os.PathLike[str]) -> Keys:
    """The keys in the content of a file. Raises ConfigError, without showing any of it."""
    if len(content) > FILE_SIZE_MAX:
        raise ConfigError(f"the key file {path} has more than {FILE_SIZE_MAX:,} bytes: is it one?")
    keys: list[Key] = []
    for number, line in enumerate(content.splitlines(), 1):
        text = line.partition(b"#")[0].strip()
        if not text:
            continue
        try:
            key = Key(bytes.fromhex(text.decode("ascii")))
        except ValueError:  # A ConfigError is one; none of them may show the line.
            raise ConfigError(
                f"line {number} of the key file {path} is not a key:"
                f" write {2 * KEY_SIZE} hexadecimal digits, or make a file by `ringcast keygen`"
            ) from None
        if key not in keys:
            keys.append(key)
    if not 1 <= len(keys) <= KEYS_MAX:
        raise ConfigError(f"the key file {path} has {len(keys)} keys: give 1 to {KEYS_MAX}")
    return tuple(keys)


def generate(path: str | os.PathLike[str]) -> Key:
    """Write a key file with one new key, for its owner only. Raises ConfigError if it exists."""
    key = secrets.token_bytes(KEY_SIZE)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise ConfigError(f"{path} exists, and a key is never overwritten: give another") from None
    except OSError as error:
        raise ConfigError(f"cannot write the key file {path}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{os.fspath(path)!r} is not the path of a key file") from None
    with os.fdopen(fd, "w") as file:
        os.fchmod(fd, 0o600)
        file.write(f"# A key of a closed group (key id {Key(key).id:02x}): keep it secret.\n")
        file.write(f"{key.hex()}\n")
        file.flush()
        os.fsync(fd)
    return Key(key)
