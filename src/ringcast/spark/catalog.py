"""Journals as tables of Spark's catalog: `CREATE TABLE t USING ringcast LOCATION 'journal/'`.

Spark hands a table's properties to a Python source when the table is created, and nothing but the
columns when it is read. So the options are kept where they come back: in the metadata of the first
column.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

KEY = "ringcast"
"""Names the options in a column's metadata."""
MARK = "provider"
"""A property that every table of a catalog has, and no other use of a source."""
PREFIX = "option."
"""How the names of properties begin that were given as OPTIONS."""


def is_table(options: Mapping[str, str]) -> bool:
    """Whether these are the properties of a table that is being created."""
    return MARK in options


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The options among the properties of a table; its place is made absolute."""
    given = {
        name.removeprefix(PREFIX): value
        for name, value in properties.items()
        if name.startswith(PREFIX)
    }
    path = properties.get("location") or properties.get("path")
    if path is None:
        return given
    return given | {"path": path if ":" in path else os.path.abspath(path)}


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The columns, which carry the options."""
    first, *others = schema.fields
    metadata = {KEY: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, True, metadata), *others])


def options_in(schema: StructType) -> dict[str, str]:
    """The options that columns carry; none where they are not those of a table."""
    found: dict[str, str] = {}
    for field in schema.fields:
        found |= json.loads((field.metadata or {}).get(KEY, "{}"))
    return found
