"""Where things are in a journal's directory, under which names.

    journal/
      00000000000000a1-prices-00000001.parquet      a sealed segment, which any Spark reads
      _manifest/00000000000000a1-prices-00000001.json   what is in it: one file per segment
      _manifest/removed-00000000000000a1-prices.json    what this recorder's retention took away
      _manifest/checkpoint.jsonl                    manifests of many segments, one per line
      00000000000000a1-prices-00000001to00000900.parquet  segments 1 to 900, compacted
      _open/00000000000000a1-prices-00000002.log        what is being recorded, locked while it is

Spark's own readers skip names that begin with `_` or `.`, so `spark.read.parquet("journal/")` sees
sealed segments and nothing else. Every name carries its recorder: no two recorders write one file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ringcast.errors import ConfigError, LocalError


@dataclass(frozen=True)
class Layout:
    """The paths of one journal."""

    root: Path

    @property
    def manifests(self) -> Path:
        """The directory that makes a directory a journal."""
        return self.root / "_manifest"

    @property
    def logs(self) -> Path:
        """The directory of what is not sealed yet."""
        return self.root / "_open"

    def segment(self, name: str) -> Path:
        """The Parquet file of a segment."""
        return self.root / f"{name}.parquet"

    def manifest(self, name: str) -> Path:
        """The manifest of a segment."""
        return self.manifests / f"{name}.json"

    def log(self, name: str) -> Path:
        """The log of a segment that is still open, or that nobody sealed."""
        return self.logs / f"{name}.log"

    def removed(self, stem: str) -> Path:
        """What the retention of one recorder took away."""
        return self.manifests / f"{REMOVED}{stem}.json"

    @property
    def checkpoint(self) -> Path:
        """The manifests that were folded into one file; compacted segments are in no other."""
        return self.manifests / "checkpoint.jsonl"

    @property
    def lock(self) -> Path:
        """Locked by the process that changes the checkpoint or removes segments."""
        return self.manifests / ".lock"

    def log_names(self) -> list[str]:
        """The segments that have a log, in order."""
        return sorted(path.stem for path in self.logs.glob("*.log"))


def temporary(path: Path) -> Path:
    """The hidden name under which a file is written before it gets its own."""
    return path.with_name(f".{path.name}.tmp")


def stem_of(group: str, recorder: int) -> str:
    """What all names of one recorder begin with; a hexadecimal digit first, so never hidden."""
    return f"{recorder & UNSIGNED_MAX:016x}-{re.sub('[^A-Za-z0-9]', '-', group)[:32]}"


def name_of(stem: str, number: int) -> str:
    """The name of a recorder's segment; names of one recorder sort as they were opened."""
    return f"{stem}-{number:08d}"


def compacted_name(stem: str, first: int, last: int) -> str:
    """The name of a segment that stands for those of one recorder from one number to another."""
    return f"{stem}-{first:08d}to{last:08d}"


def is_segment_name(name: str) -> bool:
    """Whether a name that a file holds can be a segment of this journal, and no path elsewhere."""
    return _SEGMENT.fullmatch(name) is not None


_SEGMENT = re.compile(r"[0-9a-f]{16}-[A-Za-z0-9-]{0,32}-[0-9]{8,18}(to[0-9]{8,18})?")


def numbers_of(name: str) -> tuple[int, int]:
    """The first and the last number of the segments that a name stands for."""
    found = _NUMBERS.search(name)
    if found is None:
        return 0, 0
    first, last = found[1], found[2] or found[1]
    return int(first), int(last)


def covers(compacted: str, name: str) -> bool:
    """Whether a compacted segment stands for another one of the same recorder, by their names."""
    stem, other = _NUMBERS.sub("", compacted), _NUMBERS.sub("", name)
    (first, last), (least, most) = numbers_of(compacted), numbers_of(name)
    return stem == other and first <= least <= most <= last and compacted != name


_NUMBERS = re.compile("-([0-9]{8,18})(?:to([0-9]{8,18}))?$")


def number_of(name: str, stem: str) -> int:
    """The last number in a segment's name; 0 when the name is not of this recorder."""
    return numbers_of(name)[1] if _NUMBERS.sub("", name) == stem else 0


def signed(address: int) -> int:
    """An address as Spark's signed long; takes it signed or unsigned. Raises LocalError."""
    if not SIGNED_MIN <= address <= UNSIGNED_MAX:
        raise LocalError(f"{address} is not an address: it has more than 64 bits")
    # A plain int: an Address would print itself in another way, and names and JSON are text.
    return int(address) if address <= SIGNED_MAX else int(address) - UNSIGNED_MAX - 1


def journal_at(directory: str | Path) -> Layout:
    """The journal in this directory; raises ConfigError, with what to do, when there is none."""
    if not str(directory):
        raise ConfigError("the directory of the journal is empty: name it")
    root = Path(directory)
    layout = Layout(root)
    if layout.manifests.is_dir():
        return layout
    if not root.exists():
        raise ConfigError(f"no such directory: {root}; give the directory of a journal")
    if not root.is_dir():
        raise ConfigError(f"{root} is a file, not the directory of a journal")
    foreign = next(root.glob("*.parquet"), None)
    if foreign is not None:
        raise ConfigError(
            f"{root} has Parquet files that no recorder wrote ({foreign.name}): read it with "
            'format("parquet"), or give the directory of a journal'
        )
    what = "is empty" if next(root.iterdir(), None) is None else "is not a journal"
    raise ConfigError(f"{root} {what}: start `ringcast record GROUP --to {root}` first")


REMOVED = "removed-"
SIGNED_MIN, SIGNED_MAX, UNSIGNED_MAX = -(2**63), 2**63 - 1, 2**64 - 1
