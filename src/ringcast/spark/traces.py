"""Opens the traces of a run, and says in one sentence why it can't."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from ringcast.errors import ConfigError
from ringcast.spark.schema import TRACE
from ringcast.trace.table import SCHEMA

FOOTERS_MAX = 1_000
"""How many files are looked into before Spark reads them."""


def read_trace(spark: SparkSession, path: str | Path) -> DataFrame:
    """The rows of all members' traces in a directory, or in anything else that Spark can name.

    Raises ConfigError when there is no such place, nothing in it, or something else than a trace.
    """
    place = str(path)
    if "://" in place:
        return _read_elsewhere(spark, place)
    files = _files(Path(place))
    for file in files[:FOOTERS_MAX]:
        if problem := _problem(file):
            raise ConfigError(f"{file} is no trace of Ringcast: {problem}.")
    return spark.read.schema(TRACE).parquet(place)


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Raise ConfigError, in one sentence, where Spark fails at the traces in this place."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise blame(path, error) from error


def blame(path: str | Path, error: Exception) -> ConfigError:
    """What to tell when Spark failed at a trace: which file is damaged, else what Spark said."""
    place = str(path)
    if "://" not in place:
        for file in _files(Path(place))[:FOOTERS_MAX]:
            if not _is_whole(file):
                return ConfigError(
                    f"{file} is damaged: restore it, or move it away to audit the other traces."
                )
    said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return ConfigError(f"Spark could not read the traces in {place}: {said.strip()}")


def _is_whole(file: Path) -> bool:
    try:
        pq.read_table(file)
    except (pa.ArrowException, OSError):
        return False
    return True


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ConfigError(f"There is no directory {path}: name the one that the members traced to.")
    found = sorted(_visible(path)) if path.is_dir() else [path]
    if not found:
        raise ConfigError(f"There is no trace in {path}: its members wrote nothing, or elsewhere.")
    return found


def _visible(path: Path) -> Iterator[Path]:
    """The files that Spark would read: those whose names don't begin with a dot or an underline."""
    for file in path.iterdir():
        if not file.name.startswith((".", "_")) and file.is_file():
            yield file


def _problem(file: Path) -> str | None:
    """Why a file is no trace, or None."""
    try:
        found = pq.read_schema(file)
    except (pa.ArrowException, OSError):
        return "it is no Parquet file"
    for field in SCHEMA:
        if field.name not in found.names:
            return f"it has no column '{field.name}'"
        if not _same(found.field(field.name).type, field.type):
            return f"its column '{field.name}' is of another type"
    return None


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Tell whether types are the same; of lists, Spark and Arrow call the elements differently."""
    if isinstance(one, pa.ListType) and isinstance(other, pa.ListType):
        return bool(one.value_type == other.value_type)
    return bool(one == other)


def _read_elsewhere(spark: SparkSession, place: str) -> DataFrame:
    """Read from a store that only Spark knows; what it infers tells whether it is a trace."""
    try:
        found = spark.read.parquet(place)
    except AnalysisException as error:
        raise ConfigError(f"There is no trace at {place}: Spark finds nothing there.") from error
    for field in TRACE:
        if field.name not in found.columns:
            raise ConfigError(f"{place} is no trace of Ringcast: it has no column '{field.name}'.")
    return spark.read.schema(TRACE).parquet(place)
