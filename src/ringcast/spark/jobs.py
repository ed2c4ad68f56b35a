"""What differs between a session of this process and one over Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def is_remote(spark: SparkSession) -> bool:
    """Whether a session talks to its Java over Spark Connect."""
    return not hasattr(spark, "sparkContext")


def count_cores(spark: SparkSession) -> int:
    """How many tasks run at the same time; over Spark Connect what a range is cut into."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    try:
        return int(spark.conf.get("spark.default.parallelism") or 1)
    except PySparkException:  # It is not set, and a server does not tell its cores.
        from pyspark.sql import functions as F

        used = spark.range(1_000).select(F.spark_partition_id().alias("partition")).distinct()
        return max(1, used.count())


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Give the jobs that are run inside a description in Spark's pages; over Connect a tag."""
    if is_remote(spark):
        tag = text.replace(",", "")
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    context = spark.sparkContext
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]  # None unsets


DESCRIPTION = "spark.job.description"
