"""A journal in S3, as `moto` stands in for it: uploaded while it is written, read as any other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ringcast.spark as rs
from ringcast.journal import JournalError, JournalWriter
from ringcast.journal.format.object_store import MANIFESTS, ObjectStore
from ringcast.journal.write.upload import upload
from tests.spark.support import fill, rows
from tests.unit.journal.support import expected

moto: Any = pytest.importorskip("moto.server", reason="needs 'moto[s3]', flask and flask-cors")
boto3: Any = pytest.importorskip("boto3")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a bucket, with what it takes to reach it."""
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**keys, "AWS_EC2_METADATA_DISABLED": "true"}.items():
            patch.setenv(name, value)
        server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        try:
            _, port = server.get_host_and_port()
            place = f"127.0.0.1:{port}"
            client = boto3.client("s3", endpoint_url=f"http://{place}", region_name="us-east-1")
            client.create_bucket(Bucket="bucket")
            yield f"s3://key:secret@bucket/FOLDER?endpoint_override={place}&scheme=http"
        finally:
            server.stop()


def test_batches_and_streams_read_what_was_uploaded(
    source: SparkSession, s3: str, tmp_path: Path
) -> None:
    url = s3.replace("FOLDER", "prices")
    journal, table = tmp_path / "journal", tmp_path / "table"

    def stream() -> list[tuple[str, int, int, bytes]]:
        query = (
            source.readStream.format("ringcast").load(url).writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "check")).trigger(availableNow=True)
            .start(str(table))
        )  # fmt: skip
        query.awaitTermination()
        assert rs.lag(query, url).rows == 0
        return rows(source.read.parquet(str(table)))

    with JournalWriter(journal, "prices", 1) as writer:
        fill(writer, 7, 1, 30)
        assert upload(journal, url).segments > 0
        assert stream() == expected(7, 1, 30)
        fill(writer, 8, 1, 10)
        upload(journal, url)
    frame = source.read.format("ringcast").load(url)
    assert rows(frame) == expected(7, 1, 30) + expected(8, 1, 10)
    assert rows(frame.where("sender = 8")) == expected(8, 1, 10)
    assert rows(rs.journal(source, url)) == rows(frame)
    of_eight = rs.journal(source, url, sender=8, seqno=(4, None))
    assert rows(of_eight) == expected(8, 4, 10)
    assert of_eight.rdd.getNumPartitions() == 1, "the other segments are not read"
    assert stream() == rows(frame)
    assert upload(journal, url).segments == 0


def test_what_is_not_there_is_told(source: SparkSession, s3: str, tmp_path: Path) -> None:
    nothing = s3.replace("FOLDER", "nothing")
    with pytest.raises(Exception, match="s3://bucket/nothing is not a journal") as caught:
        source.read.format("ringcast").load(nothing)
    assert "secret" not in str(caught.value).replace("AWS_SECRET", "")
    with JournalWriter(tmp_path / "journal", "prices", 1) as writer:
        fill(writer, 7, 1, 3)
    with pytest.raises(JournalError, match=r"cannot be (listed|written)"):
        upload(tmp_path / "journal", s3.replace("bucket/FOLDER", "no-bucket/prices"))


def test_an_object_is_whole_or_not_there(s3: str) -> None:
    store = ObjectStore(s3.replace("FOLDER", "objects"))
    content = os.urandom(6 * 2**20)  # In several parts.
    store.write(f"{MANIFESTS}/large", content)
    assert store.read(f"{MANIFESTS}/large") == content
    assert store.names(MANIFESTS)["large"].size == len(content)
    store.delete(f"{MANIFESTS}/large")
    assert store.names(MANIFESTS) == {}
