"""A trace to audit, made up: members that all send, each message delivered by all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ringcast.trace.checksum import trace_name
from ringcast.trace.row_encoding import DELIVERED_CODE, SENT_CODE
from ringcast.trace.schema import Row
from ringcast.trace.table import Sheet
from ringcast.trace.writer import NO_PLACE, TraceWriter

Words = npt.NDArray[np.int64]

MEMBERS = 5
START = 1_700_000_000_000_000
INTERVAL_US, LATENCY_US_MAX, PURGE_EVERY = 10, 15_000, 1_000
GROUP_ROWS = 16_384


def generate(place: Path, rows: int, run: int, count: int = MEMBERS, files: int = 0) -> int:
    """Write a good trace with about this many delivery rows, and say how many exactly.

    count: how many members; files: how many files they write together, at least one each.
    """
    runs = max(1, rows // count**2)
    members = tuple(range(1000, 1000 + count))
    chance = np.random.default_rng(7)
    pieces = min(runs, max(1, files // count))
    for member in members:
        for number, numbers in enumerate(np.array_split(np.arange(runs), pieces)):
            draft = place / f".{member:016x}.parquet.tmp"
            sheet = Sheet(draft)
            if number == 0:
                sheet.write_rows(list(others(member, members, runs, run)))
            write(sheet, member, sent(member, numbers, run))
            for start in range(0, len(numbers), GROUP_ROWS):
                part = numbers[start : start + GROUP_ROWS]
                rows_of_all = [delivered(sender, part, run, chance) for sender in members]
                write(sheet, member, np.concatenate(rows_of_all))
            sheet.close()
            draft.rename(place / trace_name(member, number, sheet.checksum))
    return runs * count**2


def sent(member: int, numbers: Words, run: int) -> Words:
    """The rows of what a member sent."""
    return notes(member, SENT_CODE, numbers, run, np.full(len(numbers), -1), sent_at(numbers))


def delivered(sender: int, numbers: Words, run: int, chance: np.random.Generator) -> Words:
    """The rows of what a member delivered from a sender, at random times."""
    latency = np.minimum(chance.lognormal(7, 0.8, len(numbers)), LATENCY_US_MAX).astype(np.int64)
    at = sent_at(numbers) + latency
    return notes(sender, DELIVERED_CODE, numbers, run, numbers * run, at)


def notes(sender: int, code: int, numbers: Words, run: int, pos: Words, at: Words) -> Words:
    """Rows as `ringcast.trace.row_encoding` packs them: twelve words each."""
    size = len(numbers)
    digest = (numbers * 2_654_435_761 + sender) % 2**32
    fixed = [np.full(size, value) for value in (1, 1000, sender, code)]
    given = [1 + numbers * run, np.full(size, run), pos, np.full(size, 100 * run)]
    place = np.full(size, NO_PLACE)
    return np.stack([*fixed, *given, digest, sent_at(numbers), at, place], axis=1)


def sent_at(numbers: Words) -> Words:
    return START + numbers * INTERVAL_US


def write(sheet: Sheet, member: int, rows: Words) -> None:
    for start in range(0, len(rows), GROUP_ROWS):
        part = np.ascontiguousarray(rows[start : start + GROUP_ROWS])
        sheet.write_messages(member, bytearray(part.tobytes()))


def others(member: int, members: tuple[int, ...], runs: int, run: int) -> Iterator[Row]:
    """The view, the purges and the end."""
    names = tuple(f"m{address}" for address in members)
    yield Row(member, 1, 1000, None, "view", at=START - 1, members=members, names=names)
    for number in range(PURGE_EVERY, runs, PURGE_EVERY):
        at = START + number * INTERVAL_US + LATENCY_US_MAX
        low, count = number * run, PURGE_EVERY * run
        row = Row(member, 1, 1000, member, "purged", low - count + 1, count, at=at)
        yield row._replace(low=low, delivered=low, high=low + 100 * run)
    at = START + runs * INTERVAL_US + LATENCY_US_MAX
    yield Row(member, 1, 1000, None, "closed", at=at)


def writing_cost(place: Path, rows: int = 300_000) -> float:
    """What a member spends on a row of its trace, from the note to the file, in nanoseconds."""
    with TraceWriter(place, 1000) as writer:
        writer.append_view(1, 1000, [1000, 1001], ["a", "b"], START)
        before = time.process_time()
        for number in range(rows):
            at = START + number * INTERVAL_US
            writer.append_delivered(1001, 1 + number, 1, 100, at, at + 300, number)
        writer.rotate()
        spent = time.process_time() - before
    shutil.rmtree(place)
    return spent / rows * 1e9
