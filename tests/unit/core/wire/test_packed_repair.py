"""What was lost of packed runs is sent again datagram by datagram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import Data, Frame
from ringcast.core.wire.layout import DATA_PAYLOADS_AT
from ringcast.core.wire.outbox import PackedPart, without_trains
from ringcast.core.wire.packed import PACKET_TRIES, SentRuns, encode_packed, pack
from ringcast.core.wire.receiver import Receiver

GROUP, A, B, ME = 7, Address(1), Address(2), Address(3)
VIEW = ViewId(4, A)
MTU = 1_472
ROOM = MTU - DATA_PAYLOADS_AT


def a_run(first: int, count: int, size: int = 1_000, low: int = 0) -> Data:
    content = Random(first).randbytes(count * size)
    payloads = [content[at : at + size] for at in range(0, len(content), size)]
    return Data(VIEW, 0, A, first, low, 99, 0, list(payloads), count * size, size)


def part(run: Data, first: int, last: int) -> Data:
    payloads = run.payloads[first - run.first : last + 1 - run.first]
    return replace(run, first=first, payloads=payloads, nbytes=len(payloads) * run.size)


def datagrams(packed: PackedPart) -> list[bytes]:
    return [b"".join(one.buffers) for one in without_trains(encode_packed(packed))]


def noted(*runs: Data) -> SentRuns:
    sent = SentRuns(A)
    for run in runs:
        sent.note(run, pack(GROUP, A, run, ROOM))
    return sent


class Reader:
    """A receiver, and the messages that it has."""

    def __init__(self) -> None:
        self.messages: dict[int, bytes] = {}
        self._receiver = Receiver(GROUP, ME, self._take, Counter())

    def _take(self, frames: Iterable[Frame], source: Address) -> None:
        for frame in frames:
            assert isinstance(frame, Data)
            for number, payload in enumerate(frame.payloads, frame.first):
                self.messages[number] = bytes(payload)

    def read(self, data: Iterable[bytes]) -> None:
        self._receiver.receive(list(data), VIEW)


@pytest.mark.parametrize("seed", range(40))
def test_what_was_lost_is_sent_again_and_nothing_else(seed: int) -> None:
    """The datagrams that are sent again are those that were lost, but for a few between two of
    them."""
    chance = Random(seed)
    run = a_run(10, chance.choice([7, 60, 200]), chance.choice([301, 700, 1_000, 1_300]))
    every, reader, sent = datagrams(pack(GROUP, A, run, ROOM)), Reader(), noted(run)
    lost = [one for one in every if chance.random() < 0.1]
    reader.read(one for one in every if one not in lost)
    missing = RangeSet(
        (n, n) for n in range(10, 10 + len(run.payloads)) if n not in reader.messages
    )
    again: list[bytes] = []
    for first, last in missing:
        for frame in sent.again(part(run, first, last), B, MTU):
            assert isinstance(frame, PackedPart), "no message is sent whole"
            assert frame.nbytes <= (last + 1 - first) * run.size
            again += datagrams(frame)
    assert set(lost) <= set(again)
    assert len(again) <= 1.2 * len(lost) + 2
    reader.read(again)
    assert reader.messages == dict(enumerate(map(bytes, run.payloads), 10))


def test_a_lost_datagram_costs_no_more_than_itself() -> None:
    run = a_run(1, 30)
    lost = datagrams(pack(GROUP, A, run, ROOM))[4]
    (frame,) = noted(run).again(part(run, 6, 7), B, MTU)
    assert isinstance(frame, PackedPart)
    assert frame.nbytes < 1_472
    assert datagrams(frame) == [lost]


def test_messages_without_a_whole_datagram_are_sent_as_they_are() -> None:
    run = a_run(1, 30)
    one = part(run, 7, 7)
    assert noted(run).again(one, B, MTU) == [one]


def test_what_lies_beside_the_lost_datagrams_is_sent_whole() -> None:
    run = a_run(1, 30)
    packed, *rest = noted(run).again(part(run, 4, 8), B, MTU)
    assert isinstance(packed, PackedPart)
    assert rest == [part(run, 4, 4), part(run, 8, 8)]


def test_a_receiver_that_kept_no_halves_gets_whole_messages_after_a_few_tries() -> None:
    run, wanted = a_run(1, 30), part(a_run(1, 30), 6, 7)
    sent = noted(run)
    for _ in range(PACKET_TRIES):
        assert isinstance(sent.again(wanted, B, MTU)[0], PackedPart)
    assert sent.again(wanted, B, MTU) == [wanted]
    assert isinstance(sent.again(wanted, ME, MTU)[0], PackedPart), "another one has lost it too"


@pytest.mark.parametrize("changed", [
    {"view": ViewId(5, A)}, {"origin": B}, {"first": 31}, {"size": 999}, {"payloads": []},
])  # fmt: skip
def test_what_was_not_sent_like_this_is_sent_as_it_is(changed: dict[str, object]) -> None:
    wanted = replace(part(a_run(1, 30), 6, 8), **changed)  # type: ignore[arg-type]
    assert noted(a_run(1, 30)).again(wanted, B, MTU) == [wanted]


def test_a_path_that_carries_less_gets_whole_messages() -> None:
    wanted = part(a_run(1, 30), 6, 8)
    assert noted(a_run(1, 30)).again(wanted, B, MTU - 1) == [wanted]


def test_another_view_forgets_what_was_sent() -> None:
    later = replace(a_run(31, 30), view=ViewId(5, A))
    sent = noted(a_run(1, 30), later)
    wanted = replace(part(a_run(1, 30), 6, 8), view=ViewId(5, A))
    assert sent.again(wanted, B, MTU) == [wanted]
    wanted = part(later, 36, 38)
    assert isinstance(sent.again(wanted, B, MTU)[0], PackedPart)


def test_what_all_have_is_forgotten() -> None:
    sent = SentRuns(A)
    for first in range(1, 30_001, 30):
        run = a_run(first, 30, low=max(0, first - 301))
        sent.note(run, pack(GROUP, A, run, ROOM))
        assert len(sent._runs) == len(sent._firsts) <= 12


def test_runs_that_are_sent_again_whole_are_not_noted() -> None:
    run = a_run(1, 30)
    sent = noted(run)
    repeated = part(run, 6, 9)
    sent.note(repeated, pack(GROUP, A, repeated, ROOM))
    (frame,) = sent.again(part(run, 6, 7), B, MTU)
    assert isinstance(frame, PackedPart)
    assert frame.head == pack(GROUP, A, run, ROOM).head
