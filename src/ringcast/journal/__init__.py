"""The journal: what a recorder delivered, durably, for Spark and for anyone who reads Parquet."""

from ringcast.journal.errors import DataLost, JournalError, JournalFull
from ringcast.journal.files import Files
from ringcast.journal.manifest import Segment
from ringcast.journal.reader import Journal
from ringcast.journal.recover import recover
from ringcast.journal.writer import JournalWriter

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
