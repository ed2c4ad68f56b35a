"""`ringcast.trace.row_rules` as an expression of Spark: which rows of a trace can be used."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.trace.row_rules import (
    BOUNDS,
    MALFORMED,
    NEEDED,
    OTHERS_ROW,
    OWN_KINDS,
    UNKNOWN_KIND,
)
from ringcast.trace.schema import KINDS, REQUIRED, VIEW


def row_problem(*kinds: str) -> Column:
    """The cause why a row can't be used, or null; `kinds` are those that a query looks at."""
    kind = F.col("kind")
    absent = [F.col(name).isNull() for name in REQUIRED]
    for name in sorted({name for k in kinds for name in NEEDED.get(k, ())}):
        needing = [k for k in kinds if name in NEEDED.get(k, ())]
        null = F.col(name).isNull()
        absent.append(null if len(needing) == len(kinds) else kind.isin(*needing) & null)
    beyond = [~F.col(name).between(*bounds) for name, bounds in BOUNDS.items()]
    if VIEW in kinds:
        beyond.append(F.exists("members", lambda member: member.isNull()))
    malformed = reduce(or_, [F.coalesce(part, F.lit(False)) for part in absent + beyond])
    problem = F.when(~kind.isin(*KINDS), UNKNOWN_KIND).when(malformed, MALFORMED)
    if own := [k for k in kinds if k in OWN_KINDS]:
        problem = problem.when(kind.isin(*own) & (F.col("sender") != F.col("member")), OTHERS_ROW)
    return problem


def with_problem(rows: DataFrame, *kinds: str) -> DataFrame:
    """The rows with their `problem`; where there is one, numbers that could overflow are null."""
    checked = rows.withColumn("problem", row_problem(*kinds))
    sound = F.col("problem").isNull()
    numbers = [name for name in BOUNDS if name not in REQUIRED or name == "at"]
    return checked.withColumns({name: F.when(sound, F.col(name)) for name in numbers})
