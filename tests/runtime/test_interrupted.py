"""Callers in odd places: in a signal handler, in a fork, or gone without a word."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from ringcast import Closed, LocalError, Message, Outcome, sync
from ringcast.control.failure_detector import FailureDetector
from tests.runtime.support import SOON, await_view, group_name, members, memory, running

CALLS: list[Callable[[sync.Group], object]] = [
    lambda group: group.send(b"x"),
    lambda group: group.send_many([b"x"]),
    lambda group: group.receive(timeout=SOON),
    lambda group: group.take(timeout=SOON),
    lambda group: group.call(b"x", timeout=SOON),
    lambda group: group.stats(),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_handler_that_interrupts_the_group_does_not_wait_for_itself(
    call: Callable[[sync.Group], object],
) -> None:
    with sync.join(group_name(), memory()) as group:
        with group._member._lock, pytest.raises(LocalError, match="signal handler"):
            call(group)  # As a handler would that runs in the middle of a step.
        group.send(b"later", timeout=SOON)
        assert group.receive(timeout=SOON).payload == b"later"


@pytest.mark.parametrize("end", [sync.Group.leave, sync.Group.close])
def test_a_handler_may_end_the_group_under_those_that_wait(
    end: Callable[[sync.Group], None],
) -> None:
    for place in ("_member._lock", "_driver._caller_lock"):
        group = sync.join(group_name(), memory())
        holder, lock = place.split(".")
        with getattr(getattr(group, holder), lock):
            end(group)
        assert list(group) == []
        group.close()  # It is closed already, and waits until that is done.
        assert group.closed in ("left", "closed")


@pytest.mark.parametrize(("error", "lines"), [(KeyboardInterrupt(), 0), (ValueError("bug"), 1)])
def test_an_interrupt_half_way_ends_the_group_and_is_no_bug(
    error: BaseException, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    with sync.join(group_name(), memory()) as group:
        group._member.fail(error)
        assert type(error).__name__ in (group.closed or "")
        with pytest.raises(Closed):
            group.send(b"x")
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == lines


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("bug")])
def test_the_others_are_told_of_a_member_that_fails_half_way(error: BaseException) -> None:
    name, patient = group_name(), memory().replace(FailureDetector(interval=1.0, timeout=600.0))
    with sync.join(name, patient) as first, sync.join(name, patient) as second:
        failing = sync.join(name, patient)
        await_view(first, 3)
        failing._member.fail(error)
        await_view(first, 2)
        await_view(second, 2)
        failing.close()


def test_who_is_forgotten_holds_nobody_back() -> None:
    with members(2, "memory") as (first, second):
        company = [sync.join(first._member.group, memory())]
        await_view(first, 3)
        with pytest.warns(ResourceWarning, match=r"View\(3.*neither left nor closed"):
            company.clear()
        await_view(first, 2)
        await_view(second, 2)


def test_the_caller_of_an_application_that_ends_is_told() -> None:
    def end(message: Message) -> bytes:
        raise SystemExit(3)

    def serve() -> None:
        with pytest.raises(SystemExit):
            list(asked)

    name = group_name()
    with sync.join(name, memory(), on_call=end) as asked, sync.join(name, memory()) as asking:
        await_view(asking, 2)
        with running(serve):
            replies = asking.call(b"?", to=asked.me, timeout=SOON)
        assert replies[asked.me].outcome is Outcome.ERROR


FORK = """
import os, sys
from ringcast import Closed, sync, presets

spec = presets.loopback() if sys.argv[2] == "multicast" else presets.tcp(when_alone="create")
group = sync.join(sys.argv[1], spec)
group.send(b"1", timeout=10.0)
assert group.receive(timeout=10.0).payload == b"1"
child = os.fork()
if not child:
    try:
        group.send(b"from the fork", timeout=10.0)
    except Closed as error:
        assert "fork" in str(error), error
        group.leave()
        group.close()
        with sync.join(sys.argv[1] + "-other", presets.loopback()) as other:
            other.send(b"x", timeout=10.0)
            assert other.receive(timeout=10.0).payload == b"x"
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
group.send(b"2", timeout=10.0)
message = group.receive(timeout=10.0)
assert (message.seqno, message.payload) == (2, b"2"), message
group.leave()
"""


AFTER = """
import os, sys
from ringcast import sync, presets

group = sync.join(sys.argv[1], presets.loopback())
group.leave()
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(50)]  # With the numbers that are free now.
if not (child := os.fork()):
    [os.fstat(fd) for fd in files]
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_a_fork_after_the_group_was_left_keeps_the_files_of_the_process() -> None:
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", AFTER, group_name()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60.0, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["multicast", "tcp"])
def test_a_fork_is_no_member(kind: str) -> None:
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, group_name(), kind]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60.0, check=False)
    assert done.returncode == 0, done.stderr
