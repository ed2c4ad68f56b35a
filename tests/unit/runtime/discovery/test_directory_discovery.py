"""A directory of notices: written whole, renewed, measured by its own clock, swept."""

import json
import os
from pathlib import Path

import pytest

from ringcast.core.model.address import Address
from ringcast.errors import ConfigError
from ringcast.runtime.discovery.directory_discovery import (
    DirectoryEntry,
    Notice,
    open_directory,
    read_notices,
)


def entry(directory: Path, me: int, group: str = "g") -> DirectoryEntry:
    """A member's place."""
    return open_directory(str(directory), Address(me), group, f"m{me}", f"10.0.0.{me}:7")


def test_members_read_what_others_have_written(tmp_path: Path) -> None:
    a, b = entry(tmp_path, 1), entry(tmp_path, 2)
    entry(tmp_path, 3, "another")
    for reader in (a, b):
        found = reader.read(stale_after=60.0)
        assert [n.endpoint for n in found] == ["10.0.0.1:7", "10.0.0.2:7"]
        assert [n.name for n in found] == ["m1", "m2"]
    b.remove()
    b.remove()
    assert [n.endpoint for n in a.read(60.0)] == ["10.0.0.1:7"]
    assert {n.group for n in read_notices(str(tmp_path))} == {"g", "another"}


def test_ages_are_measured_by_the_clock_of_the_directory(tmp_path: Path) -> None:
    """Wrong clocks on the machines change nothing: all times are those of the same disk."""
    a, b = entry(tmp_path, 1), entry(tmp_path, 2)
    for path in tmp_path.iterdir():
        os.utime(path, (1_000, 1_000))
    assert len(a.read(stale_after=60.0)) == 2, "both are from the same time, long ago"
    b.post()
    assert len(b.read(stale_after=60.0)) == 1, "now the other has not been renewed for ages"
    assert [path.name for path in tmp_path.iterdir()] == ["0000000000000002.member"]
    a.post()
    assert len(b.read(stale_after=60.0)) == 2, "it was only asleep, and writes anew"


def test_a_draft_is_no_notice_and_is_swept_when_it_is_old(tmp_path: Path) -> None:
    draft = tmp_path / ".00000000000000aa.member"
    draft.write_text(json.dumps({"group": "g", "name": "x", "endpoint": "10.0.0.9:7"}))
    a = entry(tmp_path, 1)
    assert len(a.read(60.0)) == 1
    assert draft.exists()
    os.utime(draft, (1, 1))
    a.read(60.0)
    assert not draft.exists()


def test_nothing_is_left_half_written(tmp_path: Path) -> None:
    entry(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["0000000000000001.member"]
    (notice,) = read_notices(str(tmp_path))
    assert notice[:3] == ("g", "m1", "10.0.0.1:7")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"group": 1, "name": "x", "endpoint": "10.0.0.9:7"}',
        b'{"group": "g", "name": "x", "endpoint": "nowhere"}',
        b'{"group": "g", "name": "x", "endpoint": "10.0.0.9:7"}' + b" " * 5_000,
        b"\xff\xfe",
        b"[" * 4_000,
    ],
)
def test_what_is_no_notice_is_passed_over(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "00000000000000aa.member").write_bytes(data)
    found: list[Notice] = entry(tmp_path, 1).read(60.0)
    assert [notice.name for notice in found] == ["m1"]


def test_what_others_put_there_keeps_no_member_from_being_found(tmp_path: Path) -> None:
    one = entry(tmp_path, 5)
    (tmp_path / f"{1:016x}.member").mkdir()
    os.mkfifo(tmp_path / f"{2:016x}.member")
    (tmp_path / f"{3:016x}.member").symlink_to("/dev/zero")
    assert [notice.endpoint for notice in one.read(60.0)] == ["10.0.0.5:7"]


@pytest.mark.parametrize(
    "endpoint",
    [
        *("\x1b[2J:7", "a\nb:7", "\ud800:7", "a\0b:7", f"{'h' * 256}:7"),
        *("h]:7", "[h:7", "[:7", "[]:7"),
        *("host:\u0667", "host:-7", "host: 7", "host:7 ", "host:" + "7" * 1_000, ":7"),
        *(7, None, ["h:7"]),
    ],
)
def test_an_endpoint_that_no_member_has_is_passed_over(tmp_path: Path, endpoint: object) -> None:
    """It would be looked up, and shown to people."""
    one = entry(tmp_path, 5)
    text = json.dumps({"group": "g", "name": "n", "endpoint": endpoint})
    (tmp_path / f"{1:016x}.member").write_text(text)
    assert [notice.endpoint for notice in one.read(60.0)] == ["10.0.0.5:7"]
    assert [notice.endpoint for notice in read_notices(str(tmp_path))] == ["10.0.0.5:7"]


def test_many_files_of_others_keep_no_member_from_being_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringcast.runtime.discovery.directory_discovery.NOTICES_MAX", 8)
    for number in range(16):
        (tmp_path / f"{number:016x}.member").write_text("{}")
    one = entry(tmp_path, 99)
    looks = [one.read(60.0) for _ in range(200)]
    assert any(looks), "each look is at half of the files, by chance"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file: name a directory"):
        entry(tmp_path / "file", 1)
    with pytest.raises(ConfigError, match="Not a directory"):
        entry(tmp_path / "file" / "below", 1)


def test_only_the_directory_itself_is_created(tmp_path: Path) -> None:
    entry(tmp_path / "new", 1)
    with pytest.raises(ConfigError, match="No such file or directory"):
        entry(tmp_path / "not-mounted" / "prices", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
