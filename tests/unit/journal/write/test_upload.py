"""Uploads: the store has what is sealed, each message once, whatever dies when."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ringcast.cli.main import main
from ringcast.errors import ConfigError
from ringcast.journal import Journal, JournalError, JournalWriter
from ringcast.journal.format.files import Files
from ringcast.journal.format.layout import Layout
from ringcast.journal.format.object_store import MANIFESTS, ObjectStore
from ringcast.journal.read.remote import RemoteJournal
from ringcast.journal.write import upload as upload_module
from ringcast.journal.write.compact import compact
from ringcast.journal.write.upload import LOCK, Uploader, upload
from tests.unit.journal.support import FaultyFiles, Killed, append, expected, rows
from tests.unit.journal.write.test_compact import ALL, write


class DyingStore(ObjectStore):
    """A store whose user dies before the change with this number."""

    def __init__(self, url: str, die_at: int) -> None:
        super().__init__(url)
        self._left = die_at

    def write(self, name: str, data: bytes) -> None:
        self._step()
        super().write(name, data)

    def delete(self, name: str) -> None:
        self._step()
        super().delete(name)

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    write(tmp_path / "journal")
    return tmp_path / "journal"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


def test_a_store_has_what_is_sealed(journal: Path, url: str) -> None:
    done = upload(journal, url)
    assert (done.segments, done.rows, done.missed) == (6, 80, 0)
    there, here = RemoteJournal(url), Journal(journal)
    assert sorted(rows(there.read())) == ALL
    assert (there.cover, there.members()) == (here.cover, here.members())
    assert upload(journal, url).segments == 0


def test_what_was_sealed_since_is_uploaded_and_seen(journal: Path, url: str) -> None:
    with Uploader.of(journal, url) as uploader:
        uploader.run()
        reader = RemoteJournal(url)
        with JournalWriter(journal, "prices", 1, files=FaultyFiles()) as writer:
            append(writer, 7, 41, 50)
        assert uploader.run().rows == 10
        assert reader.refresh_now()
    assert sorted(rows(reader.read())) == sorted(ALL + expected(7, 41, 50))


@pytest.mark.parametrize("fold", [2, 1_000])
def test_an_uploader_may_die_before_any_change(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fold: int
) -> None:
    """A reader never finds less than before, nor anything twice; the next upload mends it."""
    monkeypatch.setattr(upload_module, "FOLD_SEGMENTS", fold)
    lives = 0
    for die_at in range(100):
        url = (tmp_path / f"store-{die_at}").as_uri()
        try:
            Uploader(Journal(journal), DyingStore(url, die_at)).run()
        except Killed:
            lives += 1
        else:
            break
        if ObjectStore(url).names(MANIFESTS):
            seen = rows(RemoteJournal(url).read())
            assert len(seen) == len(set(seen))
            assert set(seen) <= set(ALL)
        upload(journal, url)
        assert sorted(rows(RemoteJournal(url).read())) == ALL
    assert lives >= 12


def test_manifests_are_folded_and_a_reader_stays_right(
    journal: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(journal, url)
    reader = RemoteJournal(url)
    monkeypatch.setattr(upload_module, "FOLD_SEGMENTS", 3)
    upload(journal, url)
    names = sorted(ObjectStore(url).names(MANIFESTS))
    assert len(names) == 3, "one recorder has four segments and is folded, one has two"
    assert names[-1].startswith("checkpoint-")
    reader.refresh_now()
    assert sorted(rows(reader.read())) == ALL
    assert upload(journal, url).segments == 0
    assert sorted(rows(RemoteJournal(url).read())) == ALL


def test_compacted_segments_are_not_uploaded_twice(journal: Path, url: str) -> None:
    upload(journal, url)
    compact(journal)
    assert upload(journal, url).segments == 0
    assert sorted(rows(RemoteJournal(url).read())) == ALL


def test_a_journal_compacted_before_is_uploaded_as_it_is(journal: Path, url: str) -> None:
    compact(journal)
    assert upload(journal, url).segments == 2
    assert sorted(rows(RemoteJournal(url).read())) == ALL


def test_a_segment_compacted_under_way_is_uploaded_next_time(journal: Path, url: str) -> None:
    with Uploader.of(journal, url) as uploader:
        uploader.run()
        with JournalWriter(journal, "prices", 1, files=FaultyFiles()) as writer:
            append(writer, 7, 41, 45)
            writer.seal()
            append(writer, 7, 46, 50)
        uploader.run(lambda _: void(compact(journal)))
        uploader.run()
    assert sorted(rows(RemoteJournal(url).read())) == sorted(ALL + expected(7, 41, 50))


def void(_: object) -> None:
    """Take a value and give none."""


def test_what_retention_took_before_is_told(journal: Path, url: str) -> None:
    files = FaultyFiles()
    with JournalWriter(journal, "prices", 3, files=files, retention_bytes=1) as writer:
        append(writer, 7, 41, 50)
        writer.seal()
    done = upload(journal, url)
    assert done.missed == 60
    assert "removed 60 messages before" in str(done)


def test_a_damaged_segment_is_told_and_not_uploaded(journal: Path, url: str) -> None:
    damaged = next(journal.glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(JournalError, match="is damaged: it has"):
        upload(journal, url)
    assert damaged.name not in ObjectStore(url).names()


def test_two_uploaders_refuse_each_other(journal: Path, url: str) -> None:
    files = Files()
    fd = files.create(Layout(journal).manifests / LOCK, new=False)
    assert files.lock(fd)
    with pytest.raises(JournalError, match="another process uploads"):
        upload(journal, url)
    files.close(fd)
    assert upload(journal, url).segments == 6


def test_mistakes_are_told(journal: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not an address of a store"):
        upload(journal, str(tmp_path / "store"))
    with pytest.raises(ConfigError, match="no such directory"):
        upload(tmp_path / "nowhere", "file:///tmp")
    with pytest.raises(ConfigError, match="is not an address of a store"):
        upload(journal, "ftp://host/folder")


def test_the_command_says_what_it_did(
    journal: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upload", str(journal), url, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["segments"], told["rows"], told["missed"]) == (6, 80, 0)
    assert main(["upload", str(journal), url]) == 0
    assert capsys.readouterr().out == "0 segments with 0 messages were uploaded.\n"


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_damaged_and_not_waited_for(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    with JournalWriter(tmp_path / "journal", "prices", 1) as writer:
        append(writer, 7, 1, 5)
    (segment,) = Journal(tmp_path / "journal").segments
    place = Layout(tmp_path / "journal").segment(segment.name)
    place.unlink()
    put(place)
    with pytest.raises(JournalError, match=r"\.parquet is damaged: it has 0 bytes, and its"):
        upload(tmp_path / "journal", f"file://{tmp_path}/store")
