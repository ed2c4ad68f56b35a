"""An attempt that follows one that failed in vain does not wait as long again."""

import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from ringcast.errors import Closed, JoinFailed, RingcastError, Timeout
from ringcast.gateway.settings import Settings
from ringcast.spark.failed_attempts import failing_once

SETTINGS = Settings(group="g", spec="", timeout=30.0)


@pytest.fixture(autouse=True)
def run_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with TemporaryDirectory(dir="/tmp") as short:  # Names of sockets have little room.
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        yield


def attempt(number: int, error: RingcastError | None = None, job: str = "q/1") -> bool:
    """Whether the work was done."""
    with failing_once(SETTINGS, job, number):
        if error is not None:
            raise error
        return True


@pytest.mark.parametrize("error", [JoinFailed("nobody is there"), Timeout("nobody takes it")])
def test_the_next_attempts_fail_at_once_with_the_same_sentence(error: RingcastError) -> None:
    with pytest.raises(type(error)):
        attempt(0, error)
    for number in (1, 2, 3):
        with pytest.raises(type(error), match=str(error)):
            attempt(number)


def test_other_jobs_first_attempts_and_later_ones_do_their_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert attempt(1)
    with pytest.raises(Timeout):
        attempt(0, Timeout("nobody takes it"))
    assert attempt(0)
    assert attempt(1, job="q/2")
    now = time.time()
    monkeypatch.setattr("ringcast.spark.failed_attempts.time.time", lambda: now + 61)
    assert attempt(1)


def test_a_gateway_that_died_is_tried_again() -> None:
    with pytest.raises(Closed):
        attempt(0, Closed("the gateway has gone"))
    assert attempt(1)
