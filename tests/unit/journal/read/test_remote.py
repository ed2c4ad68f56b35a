"""Journals in an object store: listed seldom, read like those in a directory."""

from pathlib import Path

import pytest

from ringcast.errors import ConfigError
from ringcast.journal import DataLost, Journal, JournalError
from ringcast.journal.format.object_store import MANIFESTS, ObjectStore
from ringcast.journal.read.remote import RemoteJournal, is_address, open_journal
from ringcast.journal.read.rows import read_rows
from ringcast.journal.write.upload import upload
from tests.unit.journal.support import rows
from tests.unit.journal.write.test_compact import ALL, write


@pytest.fixture
def url(tmp_path: Path) -> str:
    write(tmp_path / "journal")
    url = (tmp_path / "store").as_uri()
    upload(tmp_path / "journal", url)
    return url


def test_a_place_is_a_directory_or_an_address(tmp_path: Path, url: str) -> None:
    assert not is_address("journal/")
    assert not is_address(tmp_path)
    assert is_address("s3://bucket/journal")
    assert type(open_journal(tmp_path / "journal")) is Journal
    assert sorted(rows(open_journal(url).read())) == ALL


def test_a_store_is_not_listed_at_every_look(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.journal.read.remote.LISTING_SECONDS", 3_600.0)
    reader = RemoteJournal(url)
    name = reader.segments[0].name
    ObjectStore(url).delete(f"{MANIFESTS}/{name}.json")
    assert not reader.refresh()
    assert reader.refresh_now()
    assert name not in {segment.name for segment in reader.segments}


def test_columns_and_senders_are_chosen(url: str) -> None:
    segment = RemoteJournal(url).segments[0]
    batches = list(read_rows(url, segment.name, {7: ((3, 5),)}, ["seqno"]))
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"seqno": seqno} for seqno in (3, 4, 5)
    ]


def test_what_is_not_there_is_told(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="is not a journal: run `ringcast upload DIR"):
        RemoteJournal((tmp_path / "elsewhere").as_uri())
    reader = RemoteJournal(url)
    store, name = ObjectStore(url), f"{reader.segments[0].name}.parquet"
    store.write(name, b"PAR1, but no more")
    with pytest.raises(JournalError, match="cannot be read"):
        list(reader.read())
    store.delete(name)
    with pytest.raises(DataLost, match="was removed"):
        list(reader.read())
