"""Parquet files that unpack to far more than their size are refused before they do."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringcast.errors import ConfigError
from ringcast.journal.format.parquet_bounds import UnpacksTooLarge, bounded, open_bounded, pages_of
from ringcast.trace.table import SCHEMA, read_file


def packed(value: Any, kind: Any, rows: int) -> Any:
    """One value many times, stored once."""
    if value is None:
        return pa.nulls(rows, kind)
    values = pa.array([value], kind.value_type if isinstance(kind, pa.ListType) else kind)
    made = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), values)
    if isinstance(kind, pa.ListType):
        return pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), made)
    return made


def write(path: Path, rows: int, **values: object) -> Path:
    columns = {f.name: packed(values.get(f.name), f.type, rows) for f in SCHEMA}
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 50_000
    return path


def test_a_value_that_stands_for_many_is_counted_as_often(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 60_000, kind="k" * 900_000)
    with open_bounded(path) as file:
        (batch,) = file.iter_batches(100_000)
        table = pa.Table.from_batches([batch])
        with pytest.raises(UnpacksTooLarge, match="54,000,000,000 bytes"):
            bounded(table.columns)


@pytest.mark.parametrize("name", ["kind", "names"])
def test_a_trace_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "a.parquet", 60_000, **{name: "k" * 900_000})
    with pytest.raises(ConfigError, match="unpacks to"):
        list(read_file(file))


def test_many_rows_that_are_stored_as_a_number_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", 1_000_000)
    with pytest.raises(UnpacksTooLarge):
        open_bounded(file, most=100_000_000)
    open_bounded(file).close()


def test_the_footer_says_what_pages_take(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    column = pa.array([bytes(1_000_000)] * 50)
    pq.write_table(pa.table({"x": column}), path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 100_000
    assert 50_000_000 <= pages_of(pq.read_metadata(path)) < 51_000_000
    with pytest.raises(UnpacksTooLarge):
        open_bounded(path, most=10_000_000)
