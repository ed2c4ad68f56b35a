"""One Spark session for all tests below, and a real cluster for those that ask for one."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import ringcast
import ringcast.spark as rs
from ringcast.spark.java import java_home
from ringcast.spark.session import QUICK_START
from tests.spark.support import processes

SOURCE = str(Path(ringcast.__file__).parents[1])
HOSTS = ("127.0.0.1", "127.0.0.2")
"""Addresses of this machine, for workers of a cluster."""


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """The run directory of every process below, with a short name, as sockets have to have."""
    with TemporaryDirectory(prefix="rc-") as path, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", path)
        yield Path(path)
        for place in (path, f"{path}/executors"):
            for process in processes(place, "ringcast.gateway"):
                os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="session")
def spark(home: Path) -> Iterator[SparkSession]:
    # Python workers import what the tests import, also where the package is not installed.
    os.environ["PYTHONPATH"] = SOURCE
    conf: dict[str, Any] = {
        "spark.sql.shuffle.partitions": 2,
        "spark.python.authenticate.socketTimeout": "180s",  # 15 s are short on a busy machine.
    }
    session = rs.session(**conf)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def source(spark: SparkSession) -> SparkSession:
    """The session, which knows the format."""
    rs.register(spark)
    return spark


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where a test's journal is."""
    return tmp_path / "journal"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers, from the installed package alone.

    The workers have an address each, so that Spark takes them for two machines: it never runs two
    copies of a task on one.
    """
    limits = ["--cores", "1", "--memory", "1g"]
    limits += ["--work-dir", str(tmp_path_factory.mktemp("cluster"))]
    with ExitStack() as stack:
        started = daemon("master.Master", HOSTS[0], ["--port", "0"], "Starting Spark master at ")
        address = stack.enter_context(started).split()[0]
        for host in HOSTS:
            worker = daemon("worker.Worker", host, [*limits, address], "Successfully registered")
            stack.enter_context(worker)
        yield address


@contextmanager
def daemon(name: str, host: str, arguments: list[str], ready: str) -> Iterator[str]:
    """A daemon of Spark; gives what it logs behind the words that say that it is ready."""
    script = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    options = ["--host", host, "--webui-port", "0"]
    command = [script, f"org.apache.spark.deploy.{name}", *options, *arguments]
    env = {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": SOURCE,
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
    }
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stderr=pipe, env=os.environ | env, text=True) as running:
        log = running.stderr
        assert log is not None
        try:
            found = next(line.split(ready)[1] for line in log if ready in line)
            # A thread reads on, because the daemon stops when the pipe is full.
            threading.Thread(target=log.read, daemon=True).start()
            yield found
        finally:
            running.kill()
