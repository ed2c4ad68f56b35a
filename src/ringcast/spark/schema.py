"""The trace schema as Spark wants it, made from the one definition in `ringcast.trace.schema`."""

from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ringcast.trace.schema import COLUMNS, INT, LONG, LONGS, REQUIRED, STRING, STRINGS

TYPES: dict[str, DataType] = {
    LONG: LongType(),
    INT: IntegerType(),
    STRING: StringType(),
    LONGS: ArrayType(LongType()),
    STRINGS: ArrayType(StringType()),
}

TRACE = StructType([StructField(n, TYPES[t], n not in REQUIRED) for n, t in COLUMNS])
