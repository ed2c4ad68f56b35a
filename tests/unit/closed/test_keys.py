"""Key files are for their owner only, and keys are shown nowhere."""

from __future__ import annotations

import copy
import os
import traceback
from pathlib import Path

import pytest

from ringcast.closed.keys import ENVIRONMENT, Key, chosen_keys, generate, load_keys
from ringcast.errors import ConfigError

SECRET = bytes(range(100, 132))


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_generated_file_is_for_its_owner_and_has_one_key(tmp_path: Path) -> None:
    path = tmp_path / "group.key"
    old = os.umask(0)
    try:
        key = generate(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(load_keys(path)) == [key]


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path / "group.key", "precious")
    with pytest.raises(ConfigError, match="never overwritten"):
        generate(path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "group.key", SECRET.hex(), mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        load_keys(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of root")
def test_a_file_of_root_may_be_read_by_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes mounts a secret like that for a pod that does not run as root."""
    monkeypatch.setattr(os, "geteuid", lambda: 10_001)
    for mode in (0o440, 0o640):
        assert len(list(load_keys(write(tmp_path / f"{mode}.key", SECRET.hex(), mode)))) == 1
    for mode in (0o444, 0o660, 0o644):
        with pytest.raises(ConfigError, match="chmod 600"):
            load_keys(write(tmp_path / f"{mode}.key", SECRET.hex(), mode))


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path)
    for path in (tmp_path, pipe, link, Path("/dev/zero")):
        with pytest.raises(ConfigError, match="is not a regular file"):
            load_keys(path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "/proc/self/mem", "x" * 5_000])
def test_a_path_that_leads_to_no_key_is_refused_with_a_sentence(path: str) -> None:
    with pytest.raises(ConfigError, match="key file"):
        load_keys(path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5_000])
def test_no_key_is_written_to_a_path_that_cannot_be(path: str) -> None:
    with pytest.raises(ConfigError, match="key file"):
        generate(path)


def test_the_first_of_several_keys_comes_first(tmp_path: Path) -> None:
    other = bytes(32)
    path = write(tmp_path / "keys", f"# a comment\n{SECRET.hex()}  # new\n\n{other.hex()}\n")
    assert list(load_keys(path)) == [Key(SECRET), Key(other)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has 0 keys"),
        ("# nothing", "has 0 keys"),
        (SECRET.hex()[:-2], "line 1"),
        (SECRET.hex() + "\n" + "zz" * 32, "line 2"),
        ("\n".join(bytes([n] * 32).hex() for n in range(17)), "has 17 keys"),
        ("0" * 70_000, "more than"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path / "keys", text)
    with pytest.raises(ConfigError, match=says) as caught:
        load_keys(path)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET.hex()[:16] not in shown


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_keys(tmp_path / "none")
    with pytest.raises(ConfigError, match="not a regular file"):
        load_keys("/dev/null")


@pytest.mark.parametrize("key", [b"", b"short", bytes(33), "text", 7])
def test_a_wrong_key_is_refused_without_showing_it(key: object) -> None:
    with pytest.raises(ConfigError, match="give 32") as caught:
        Key(key)  # type: ignore[arg-type]
    assert "short" not in str(caught.value)


def test_a_key_shows_its_id_and_nothing_else() -> None:
    key = Key(SECRET)
    assert repr(key) == str(key) == f"Key(id={key.id:02x})"
    assert key != Key(bytes(32))
    with pytest.raises(TypeError, match="not written"):
        copy.copy(key)


def test_keys_are_chosen_by_argument_or_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "group.key"
    key = generate(path)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert chosen_keys(None, None) == ((), None)
    assert chosen_keys(SECRET, None) == ((Key(SECRET),), None)
    assert chosen_keys(None, path) == ((key,), path)
    monkeypatch.setenv(ENVIRONMENT, str(path))
    assert chosen_keys(None, None) == ((key,), path)
    assert chosen_keys(SECRET, None) == ((Key(SECRET),), None)
    with pytest.raises(ConfigError, match="both"):
        chosen_keys(SECRET, path)
