"""Opens the traces of a run, and says in one sentence why it can't."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob, has_magic
from os.path import commonpath
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from ringcast.errors import ConfigError
from ringcast.journal.format.parquet_bounds import (
    GROUP_BYTES_MAX,
    UNREADABLE,
    UnpacksTooLarge,
    open_bounded,
    pages_of,
)
from ringcast.spark.schema import TRACE
from ringcast.trace.checksum import damage, is_damaged
from ringcast.trace.compaction.names import covered, trace_file
from ringcast.trace.schema import LATER
from ringcast.trace.table import SCHEMA

FOOTERS_MAX = 1_000
"""How many of the files that members have named are looked into before Spark reads them: their
names have the checksum of what a member wrote. Others may hold anything."""
SUFFIX = ".parquet"
TEXTS = (pa.large_string(), pa.string_view())
"""Other types of Arrow for what Parquet has as a text."""
EMPTY_WORDS = ("An error occurred while calling", "Traceback", "JVM stacktrace")
"""How lines of an error begin that say nothing."""
JAVA_NAMES = re.compile(r"\b([a-z]\w*\.)+[\w$]*(Exception|Error): ")
"""The class of an error in Java, which stands before its sentence."""
NO_STORE = ("ClassNotFoundException", "No FileSystem for scheme")
"""How Spark says that it has no code for a store."""
LOST = (Py4JNetworkError, ConnectionError)
"""What calls raise when Spark's Java is gone."""
CHECKED = {"parquet.page.verify-checksum.enabled": "true"}
"""Makes Spark compare the checksums of pages where there are any."""

log = logging.getLogger("ringcast.spark")


def read_trace(spark: SparkSession, path: str | Path) -> DataFrame:
    """The rows of all members' traces below a directory, or in anything else that Spark can name.

    `path` may have wildcards. Directories below are read as well, those of Hive partitions too.
    Files that do not end with .parquet are left out, and logged. Raises ConfigError when there is
    no such place, nothing in it, something else than a trace, or a damaged file.
    """
    place = str(path)
    if "://" in place:
        return _read_elsewhere(spark, place)
    found = find_traces(place)
    if found.ignored:
        log.warning("%s", found.left_out())
    above = found.above
    for file in found.files:
        if not file.is_file():
            raise ConfigError(f"{file} is not a trace of Ringcast: it is not a file.")
        if any(":" in part.name for part in (file, *file.parents) if part not in above):
            raise ConfigError(f"{file} has a colon in its name: rename it, Spark cannot read it.")
        if is_damaged(file):
            raise damage(file)
    in_names = _columns_in_names(_doubtful(found.files))
    reader = spark.read.schema(TRACE).options(**CHECKED, pathGlobFilter=f"*{SUFFIX}")
    if in_names:
        base = _base(found.roots)
        reader = reader.option("basePath", str(base))
    else:
        reader = reader.option("recursiveFileLookup", True)
    rows = reader.parquet(*(without_wildcards(str(place)) for place in found.places))
    return rows.select(*TRACE.names)


class FoundTraces(NamedTuple):
    """The files of a run."""

    roots: list[Path]
    """What was named: a directory, a file, or what wildcards stand for."""
    files: list[Path]
    ignored: list[Path]
    """Files among them that have another ending."""
    double: set[Path]
    """Files that a compacted one beside them stands for: these are not read."""

    @property
    def places(self) -> list[Path]:
        """What Spark is to read."""
        return self.files if self.double else self.roots

    @property
    def above(self) -> set[Path]:
        """The directories that were named, and those above them."""
        return {above for root in self.roots if root.is_dir() for above in (root, *root.parents)}

    @property
    def directories(self) -> set[Path]:
        """Where the files are."""
        return {file.parent for file in self.files}

    def left_out(self) -> str:
        """A sentence about the files that are not read."""
        names = ", ".join(str(file) for file in self.ignored[:3])
        more = f" and {len(self.ignored) - 3} more" if len(self.ignored) > 3 else ""
        return f"Left out, since traces end with {SUFFIX}: {names}{more}"


def find_traces(place: str) -> FoundTraces:
    """The files of a trace. Raises ConfigError when there are none."""
    roots = [Path(place)]
    if not roots[0].exists() and has_magic(place):
        roots = [Path(found) for found in sorted(glob(place))]
        if not roots:
            raise ConfigError(f"There is nothing like {place}: see what the members traced to.")
    files, ignored = list[Path](), list[Path]()
    for root in roots:
        if not root.exists():
            raise ConfigError(
                f"There is no directory {root}: name the one that the members traced to."
            )
        for file in sorted(_visible(root, set())) if root.is_dir() else [root]:
            (files if file.name.endswith(SUFFIX) else ignored).append(file)
    if not files and ignored:
        raise ConfigError(
            f"{ignored[0]} is not a trace of Ringcast: it does not end with {SUFFIX}."
        )
    if not files:
        raise ConfigError(f"There is no trace in {place}: its members wrote nothing, or elsewhere.")
    double = covered(files)
    return FoundTraces(roots, [file for file in files if file not in double], ignored, double)


def _doubtful(files: list[Path]) -> list[Path]:
    """The files that are looked into."""
    own = [file for file in files if trace_file(file) is not None]
    checked = set(own[FOOTERS_MAX:])
    return [file for file in files if file not in checked]


def _columns_in_names(files: list[Path]) -> set[str]:
    """The columns that only the names of directories have, key=value, as Spark writes them. Where
    the files have them, a directory such as member=ann is only called so.

    Raises ConfigError for a file that is not a trace, and for files of which only some have such a
    column: Spark would leave out the others.
    """
    found = dict[frozenset[str], Path]()
    for file in files:
        parts = [part.partition("=") for part in file.parent.parts]
        keys = {key for key, is_key, _ in parts if is_key} & set(TRACE.names)
        check_columns(file, keys)
        found.setdefault(frozenset(keys - set(pq.read_schema(file).names if keys else ())), file)
    if len(found) > 1:
        (one, file), (other, another) = list(found.items())[:2]
        column = min(one ^ other)
        without, having = (file, another) if column in one else (another, file)
        raise ConfigError(
            f"{without} has the column '{column}' only in the name of its directory, and {having} "
            "in the file: audit files of one kind only."
        )
    return set(next(iter(found), ()))


def _base(roots: list[Path]) -> Path:
    """The directory above all key=value directories of some places."""
    base = Path(commonpath([root.absolute() for root in roots]))
    while "=" in base.name or base.name.endswith(SUFFIX):
        base = base.parent
    return base


def without_wildcards(path: str) -> str:
    """A path that Spark takes as it is: it reads some characters as wildcards."""
    return "".join(f"\\{letter}" if letter in "\\*?[]{}" else letter for letter in path)


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Raise ConfigError, in one sentence, where Spark fails at the traces in this place."""
    try:
        yield
    except LOST as error:
        raise ConfigError(
            f"Spark ended while it read the traces in {path}: it was killed, or this machine ran "
            "out of memory. Free some and audit again, or name a cluster with --master."
        ) from error
    except (PySparkException, Py4JError) as error:
        raise blame(path, error) from error


def blame(path: str | Path, error: Exception, what: str = "read") -> ConfigError:
    """What to tell when Spark failed to read or follow a trace: which file is damaged, else what
    Spark said."""
    place = str(path)
    if "://" not in place:
        for file in find_traces(place).files:
            if not _is_whole(file):
                return damage(file)
    scheme = place.partition("://")[0]
    if "://" in place and any(word in str(error) for word in NO_STORE):
        return ConfigError(
            f"Spark cannot read {scheme}:// here: give it the package for that store "
            "(spark.jars.packages), or copy the traces to this machine."
        )
    lines = [JAVA_NAMES.sub("", line).strip(": ") for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(EMPTY_WORDS)]
    said = told[0] if told else type(error).__name__
    return ConfigError(f"Spark could not {what} the traces in {place}: {said}")


def _is_whole(file: Path) -> bool:
    try:
        with open_bounded(file) as opened:
            for _ in opened.iter_batches():
                pass
    except (*UNREADABLE, UnpacksTooLarge):
        return False
    return True


def _visible(path: Path, above: set[Path]) -> Iterator[Path]:
    """The files that Spark would read: no name on the way begins with a dot or an underline.

    Raises ConfigError for a link to a directory above, which Spark would follow again and again.
    """
    if (real := path.resolve()) in above:
        raise ConfigError(f"{path} is a link to a directory above it: remove it.")
    for file in path.iterdir():
        if file.name.startswith((".", "_")):
            continue
        if file.is_dir():
            yield from _visible(file, {*above, real})
        else:
            yield file


def check_columns(file: Path, hive_keys: set[str] | None = None) -> None:
    """Raise ConfigError for a file that is not a trace; columns may be keys of its directories."""
    if problem := _problem(file, hive_keys or set()):
        raise ConfigError(f"{file} is not a trace of Ringcast: {problem}.")


def _problem(file: Path, hive_keys: set[str]) -> str | None:
    """Why a file is not a trace, or None; columns may be keys of its directories."""
    try:
        metadata = pq.read_metadata(file)
        found = metadata.schema.to_arrow_schema()
    except UNREADABLE:
        return "it is not a Parquet file"
    if pages_of(metadata) > GROUP_BYTES_MAX:
        return f"a row group of it unpacks to {pages_of(metadata):,} bytes"
    lower = [name.lower() for name in found.names]
    for field in SCHEMA:
        if lower.count(field.name) > 1:
            return f"it has the column '{field.name}' more than once"
        if field.name in hive_keys or (field.name in LATER and field.name not in found.names):
            continue
        if field.name not in found.names:
            return f"it has no column '{field.name}'"
        kind = _stored(found.field(field.name).type)
        if kind != _stored(field.type):
            return f"its column '{field.name}' is of another type, {kind} for {field.type}"
    return None


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type as Parquet has it: Arrow knows several for the same, and names list elements."""
    if isinstance(kind, pa.DictionaryType):
        return _stored(kind.value_type)
    if isinstance(kind, (pa.ListType, pa.LargeListType)):
        return pa.list_(_stored(kind.value_type))
    return pa.string() if kind in TEXTS else kind


def _read_elsewhere(spark: SparkSession, place: str) -> DataFrame:
    """Read from a store that only Spark knows; what it infers tells whether it is a trace."""
    try:
        found = spark.read.parquet(place)
    except AnalysisException as error:
        raise ConfigError(f"There is no trace at {place}: Spark finds nothing there.") from error
    for field in TRACE:
        if field.name not in found.columns and field.name not in LATER:
            raise ConfigError(
                f"{place} is not a trace of Ringcast: it has no column '{field.name}'."
            )
    return spark.read.schema(TRACE).options(**CHECKED).parquet(place)
