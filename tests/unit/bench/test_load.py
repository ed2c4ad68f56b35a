"""Other load: seen in the machine's figures and in those of processes, and never in our own."""

import os
from pathlib import Path

import pytest

from ringcast_bench.load import Load, look, other_cores

TICKS = os.sysconf("SC_CLK_TCK")


def load(at: float, machine: float, ours: float, **others: float) -> Load:
    return Load(at, machine, ours, others)


def test_what_we_use_ourselves_is_no_disturbance() -> None:
    assert other_cores(load(0, 100, 10), load(2, 103, 13)) == 0


def test_the_machine_did_more_than_we_did() -> None:
    assert other_cores(load(0, 100, 10), load(2, 103, 12)) == pytest.approx(0.5)


def test_processes_that_are_seen_count_where_the_machine_says_less() -> None:
    before, after = load(0, 0, 0, a=1, b=5), load(2, 0, 0, a=2, b=5.5, new=9)
    assert other_cores(before, after) == pytest.approx(0.75)


def test_no_time_has_passed() -> None:
    assert other_cores(load(1, 0, 0), load(1, 5, 0)) == 0


def write_process(proc: Path, pid: int, parent: int, ticks: int) -> None:
    (proc / str(pid)).mkdir(parents=True)
    fields = ["S", str(parent), *["0"] * 9, str(ticks), "0", *["0"] * 6, "77", "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} (a name) with ) in it) {' '.join(fields)}\n")


def test_the_figures_of_the_kernel_are_read(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 20 30 5000 60 700 800 9 0 0\ncpu0 1 2 3\n")
    write_process(tmp_path, 10, 1, 4 * TICKS)
    write_process(tmp_path, 11, 2, 5 * TICKS)  # A thread of the kernel.
    write_process(tmp_path, 12, 1, 6 * TICKS)
    write_process(tmp_path, os.getpid(), 1, 7 * TICKS)
    seen = look([12], tmp_path)
    assert seen.machine == pytest.approx((100 + 20 + 30 + 9) / TICKS)
    assert seen.others == {"10 77": 4.0}
    assert seen.ours > 0


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    nothing = look([], tmp_path / "nowhere")
    assert nothing.machine == 0
    assert nothing.others == {}


def test_this_machine_can_be_looked_at() -> None:
    before = look()
    assert other_cores(before, look()) >= 0
