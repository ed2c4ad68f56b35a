"""Takes this package along to the workers of a cluster, which need not have it installed."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

import ringcast

PACKAGE = Path(ringcast.__file__).parent
_taken: set[str] = set()
"""The applications whose workers have it."""


def take_along(spark: SparkSession) -> None:
    """See to it that workers import the very code that runs here; once for each session.

    On this machine workers have the interpreter of this process, and with it the package.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local") or context.applicationId in _taken:
        return
    context.addPyFile(str(archive()))
    _taken.add(context.applicationId)


@cache
def archive() -> Path:
    """The package as a ZIP file that Python can import from; it goes with the process."""
    place = Path(tempfile.mkdtemp(prefix="ringcast-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    files = sorted(file for file in PACKAGE.rglob("*") if _belongs(file))
    digest = hashlib.sha256()
    draft = place / "draft"
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as bundle:
        for file in files:
            data = file.read_bytes()
            name = str(Path(PACKAGE.name) / file.relative_to(PACKAGE))
            bundle.writestr(name, data)
            digest.update(name.encode() + data)
    return draft.rename(place / f"ringcast-{digest.hexdigest()[:16]}.zip")


def _belongs(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts
