"""The data pipeline on Spark: all that imports pyspark stands below here."""

from ringcast.errors import ConfigError

try:
    from pyspark.sql import SparkSession
except ImportError as error:
    raise ConfigError("Spark is not installed: run 'pip install ringcast[spark]'.") from error

from ringcast.spark.audit import Report, audit
from ringcast.spark.session import session
from ringcast.spark.sweep import sweep
from ringcast.spark.traces import read_trace

__all__ = ["Report", "audit", "read_trace", "register", "session", "sweep"]


def register(spark: SparkSession) -> None:
    """Make `format("ringcast")` known to a session, whoever made it, and to its workers."""
    from ringcast.spark.source import RingcastDataSource
    from ringcast.spark.travel import take_along

    spark.dataSource.register(RingcastDataSource)
    if hasattr(spark, "sparkContext"):  # Not over Spark Connect: there it has to be installed.
        take_along(spark)
