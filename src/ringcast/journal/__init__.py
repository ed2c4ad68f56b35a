"""The journal: what a recorder delivered, durably, for Spark and for anyone who reads Parquet."""

from ringcast.journal.format.errors import DataLost, JournalError, JournalFull
from ringcast.journal.format.files import Files
from ringcast.journal.format.manifest import Segment
from ringcast.journal.read.reader import Journal
from ringcast.journal.write.recover import recover
from ringcast.journal.write.writer import JournalWriter

__all__ = [
    "DataLost",
    "Files",
    "Journal",
    "JournalError",
    "JournalFull",
    "JournalWriter",
    "Segment",
    "recover",
]
