"""Gives a ready Spark session: quiet, quick to start, on the interpreter that asks for it."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ringcast.errors import ConfigError, LocalError
from ringcast.spark.java import java_home

LOCAL = "local[*]"
QUIET = Path(__file__).with_name("log4j2.properties")

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Halves the CPU time until the first answer. It also halves the speed of long scans (`quick`).

With the first word alone Java keeps 48 MB for compiled code. Some fifty audits in a session, or a
query that runs for hours, fill them, and Java then goes on without compiling."""

CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

MASTERS = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|yarn|(spark|k8s)://.+")
CONNECT_TIMEOUT = 5.0


def session(
    master: str | None = None, app: str = "ringcast", *, quick: bool = True, **conf: object
) -> SparkSession:
    """A session on this machine, or on the cluster that `master` names.

    `quick` starts in half the time and scans at half the speed: right up to some ten million
    rows. `conf` is any Spark setting, as in `session(**{"spark.driver.memory": "4g"})`. Where a
    session runs already, that one is returned. Raises ConfigError for a setting that can't work,
    and LocalError when a session on another master is running.
    """
    if running := _running(master):
        return _with(running, conf)
    _check(master, conf)
    _prepare(master)
    builder = SparkSession.Builder().appName(app).master(master or LOCAL)
    for key, value in {**_defaults(master, quick), **conf}.items():
        builder = builder.config(key, str(value))
    before = _children()
    try:
        return builder.getOrCreate()
    except KeyboardInterrupt:
        # PySpark starts Java so that Ctrl-C does not reach it: it would go on, and complain.
        for process in _children() - before:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        raise
    except (PySparkException, RuntimeError) as error:
        raise ConfigError(f"Spark did not start on {master or LOCAL}: {_line(error)}") from error


def _children() -> set[int]:
    """The processes that this one has started and that still run, where the system tells."""
    files = Path("/proc/self/task").glob("*/children")
    return {int(process) for file in files for process in file.read_text().split()}


def _defaults(master: str | None, quick: bool) -> dict[str, object]:
    options = f"-Dlog4j2.configurationFile={QUIET.as_uri()}"
    common: dict[str, object] = {
        "spark.driver.extraJavaOptions": f"{options} {QUICK_START}" if quick else options,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if not _is_local(master):
        return common
    return common | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.python.unix.domain.socket.enabled": "true",
        # The default one starts a process for each file of a checkpoint.
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        # The default of 200 is for a cluster: here each partition is a task that waits its turn.
        "spark.sql.shuffle.partitions": 2 * (os.cpu_count() or 1),
    }


def _prepare(master: str | None) -> None:
    """Set what Spark reads from the environment, before the JVM starts."""
    os.environ["JAVA_HOME"] = str(java_home())
    if _is_local(master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    else:
        # Workers may have their interpreter elsewhere: their administrator knows better.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _check(master: str | None, conf: dict[str, object]) -> None:
    for key in conf:
        if not key.startswith("spark."):
            raise ConfigError(f"'{key}' is not a Spark setting: their names begin with 'spark.'.")
    if master is None:
        return
    if not MASTERS.fullmatch(master):
        raise ConfigError(
            f"'{master}' is not a Spark master: write local[*], local[4] or spark://host:7077."
        )
    if master.startswith("spark://"):
        _knock(master)


def _knock(master: str) -> None:
    """Ask whether a server listens: Spark itself takes a minute to notice that none does."""
    for place in master.removeprefix("spark://").split(","):
        try:
            address = urlsplit(f"//{place}")
            target = (address.hostname or "", address.port or 7077)
            with socket.create_connection(target, CONNECT_TIMEOUT):
                return
        except (OSError, ValueError):
            continue
    raise ConfigError(f"No Spark master answers at {master}: start it, or correct the address.")


def _running(master: str | None) -> SparkSession | None:
    session = SparkSession.getActiveSession()
    if session is None or master is None:
        return session
    there = session.sparkContext.master
    if there != master:
        raise LocalError(
            f"A Spark session on {there} is running in this process: stop it before one on "
            f"{master} is started."
        )
    return session


def _with(session: SparkSession, conf: dict[str, object]) -> SparkSession:
    _check(None, conf)
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, str(value))
        elif session.conf.get(key, None) != str(value):
            raise LocalError(
                f"{key} can't be changed while a Spark session is running: stop it first."
            )
    return session


def _is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def _line(error: Exception) -> str:
    """The first line of an error that says something: the rest is a Java stack."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)
