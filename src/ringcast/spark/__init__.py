"""The data pipeline on Spark: all that imports pyspark stands below here."""

import json
from contextlib import suppress
from pathlib import Path

from ringcast.errors import ConfigError

try:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
except ImportError as error:
    raise ConfigError("Spark is not installed: run `pip install 'ringcast[spark]'`") from error

from ringcast.journal.read.stream import Lag
from ringcast.spark.audit import Report, audit
from ringcast.spark.follow import audit_stream
from ringcast.spark.jobs import is_remote
from ringcast.spark.members import members
from ringcast.spark.session import session
from ringcast.spark.sweep import sweep
from ringcast.spark.table import journal
from ringcast.spark.traces import read_trace

__all__ = [
    "Lag",
    "Report",
    "audit",
    "audit_stream",
    "journal",
    "lag",
    "members",
    "read_trace",
    "register",
    "session",
    "sweep",
]


def lag(query: StreamingQuery, journal: str | Path) -> Lag:
    """How far a running query is behind the journal that it reads; zero before its first batch."""
    from ringcast.journal import JournalError
    from ringcast.journal.read.remote import open_journal
    from ringcast.journal.read.stream import JournalStream

    stream = JournalStream(open_journal(journal), lambda name, sender, spans: [])
    progress = query.lastProgress
    for source in progress["sources"] if progress is not None else ():
        offset = source["endOffset"]
        with suppress(JournalError):  # It is of another source.
            return stream.lag(json.loads(offset) if isinstance(offset, str) else offset)
    return Lag(0, 0.0)


def register(spark: SparkSession) -> None:
    """Make `format("ringcast")` known to any session, and to its workers."""
    from ringcast.spark.source import RingcastDataSource
    from ringcast.spark.travel import take_along

    spark.dataSource.register(RingcastDataSource)
    if not is_remote(spark):  # Over Spark Connect it has to be installed there.
        take_along(spark)
