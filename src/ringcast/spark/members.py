"""The members of a journal's group as a table, so that people can group by names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from ringcast.journal.read.remote import open_journal

if TYPE_CHECKING:
    import pyarrow as pa

MEMBERS = StructType(
    [
        StructField("group", StringType()),
        StructField("address", LongType()),
        StructField("name", StringType()),
        StructField("endpoint", StringType()),
        StructField("first_view", LongType()),
        StructField("first_view_by", LongType()),
        StructField("first_view_at", TimestampType()),
        StructField("last_view", LongType()),
        StructField("last_view_by", LongType()),
        StructField("last_view_at", TimestampType()),
    ]
)
"""The columns of `option("table", "members")`."""


def members(spark: SparkSession, journal: str | Path) -> DataFrame:
    """Who was in the group of a journal: one row per group and address, with its views.

    Call `rs.register(spark)` before.
    """
    return spark.read.format("ringcast").option("table", "members").load(str(journal))


class MembersReader(DataSourceReader):
    """The table of members, which manifests hold; one small task."""

    def __init__(self, path: Path | str, columns: Sequence[str]) -> None:
        self._path = path
        self._columns = tuple(columns)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """All rows, on an executor."""
        import pyarrow as pa

        schema = to_arrow_schema(MEMBERS, timezone="UTC")
        rows = [
            (
                group, seen.address, seen.name, seen.endpoint,
                seen.first.view, seen.first.view_by, seen.first.at,
                seen.last.view, seen.last.view_by, seen.last.at,
            )
            for group, table in open_journal(self._path).members().items()
            for seen in table.values()
        ]  # fmt: skip
        table = [dict(zip(MEMBERS.names, row, strict=True)) for row in rows]
        yield pa.RecordBatch.from_pylist(table, schema).select(list(self._columns))
