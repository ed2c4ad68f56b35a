"""The lines of a table by sender, without Spark."""

import random
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame

from ringcast.spark.audit.finding.sender_table import SenderTable


class Result:
    """What a query gives."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def toArrow(self) -> pa.Table:
        return self._table


def test_each_sender_gets_its_own_lines() -> None:
    chance = random.Random(1)
    lines = [(chance.randrange(-40, 40), member, member * 10) for member in range(5_000)]
    senders, members, least = map(list, zip(*lines, strict=True))
    problems = ["malformed", *[None] * 4_999]
    columns = {"sender": senders, "member": members, "least": least, "problem": problems}
    table = SenderTable(cast(DataFrame, Result(pa.table(columns))))
    assert [row["member"] for row in table.unsound] == [0]
    assert table.senders == sorted(set(senders[1:]))
    for sender in table.senders:
        expected = {member for of, member, _ in lines[1:] if of == sender}
        assert {row["member"] for row in table.of(sender)} == expected
    assert table.of(1_000) == []
