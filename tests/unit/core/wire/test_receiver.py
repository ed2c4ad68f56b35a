"""The receiver gives each frame with its source, in order, by whichever way it was read."""

from collections import Counter
from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import encode
from ringcast.core.wire.fastpath import encode_pair, encode_run
from ringcast.core.wire.frames import Ack, Alive, Data, Frame, UnicastData
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.receiver import Receiver
from ringcast.errors import Malformed, Replayed

GROUP = 7
ME, SENDER, OTHER = Address(1), Address(2), Address(3)
VIEW = ViewId(3, SENDER)


class Reader:
    """A receiver, and what it gave."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.taken: list[tuple[Address, Frame]] = []
        self.receiver = Receiver(GROUP, ME, self._take, self.counters)

    def _take(self, frames: Sequence[Frame], source: Address) -> None:
        self.taken += [(source, frame) for frame in frames]

    def read(self, *datagrams: bytes) -> list[tuple[Address, Frame]]:
        self.receiver.receive(datagrams, VIEW)
        taken, self.taken = self.taken, []
        return taken


def a_run(first: int, count: int, origin: Address = SENDER) -> Data:
    return Data(VIEW, 0, origin, first, 0, 5, 0, [b"12345678"] * count, 8 * count, 8)


def datagrams(run: Data, step: int) -> list[bytes]:
    return [b"".join(one.buffers) for one in encode_run(GROUP, run.origin, run, step)]


def control(
    frame: Frame, source: Address = OTHER, target: Address = ME, group: int = GROUP
) -> bytes:
    return b"".join(encode(group, OTHER, [frame], target=target))


def test_datagrams_of_one_batch_are_one_frame() -> None:
    assert Reader().read(*datagrams(a_run(1, 9), 4)) == [(SENDER, a_run(1, 9))]


def test_a_frame_between_two_datagrams_ends_the_open_run() -> None:
    one, two = datagrams(a_run(1, 8), 4)
    assert Reader().read(one, control(Ack(3)), two) == [
        (SENDER, a_run(1, 4)),
        (OTHER, Ack(3)),
        (SENDER, a_run(5, 4)),
    ]


def test_a_run_to_this_member_comes_with_its_source() -> None:
    run = UnicastData(77, 1, 0, 5, 0, [b"abc"] * 3, 9, 3)
    sent = b"".join(encode_pair(GROUP, OTHER, ME, run).buffers)
    assert Reader().read(sent) == [(OTHER, run)]


def test_no_run_stays_open_between_two_calls() -> None:
    reader = Reader()
    one, two = datagrams(a_run(1, 8), 4)
    assert reader.read(one) == [(SENDER, a_run(1, 4))]
    assert reader.read(two) == [(SENDER, a_run(5, 4))]


def test_every_datagram_that_is_not_right_is_counted_by_its_reason() -> None:
    reader = Reader()
    good = control(Alive())
    wrong = [
        b"",
        good[:-1],
        good[:2] + b"\x63" + good[3:],
        control(Alive(), group=GROUP + 1),
        control(Alive(), target=OTHER),
    ]
    assert reader.read(*wrong, good) == [(OTHER, Alive())]
    assert reader.counters == {
        "dropped_malformed": 2,
        "dropped_wrong_version": 1,
        "dropped_wrong_group": 1,
        "dropped_not_for_me": 1,
    }
    assert reader.receiver.refused == len(wrong)


def test_repetitions_are_counted_and_not_held_against_strangers() -> None:
    class Repeating:
        overhead = 0

        def seal(self, datagrams: Sequence[Datagram]) -> list[Datagram]:
            return list(datagrams)

        def open(self, datagram: bytes | memoryview) -> memoryview:
            raise Replayed("a datagram that was opened before")

    counters: Counter[str] = Counter()
    receiver = Receiver(GROUP, ME, lambda *taken: None, counters, Repeating())
    receiver.receive([control(Alive())] * 3, VIEW)
    assert counters == {"dropped_replayed": 3}
    assert receiver.refused == 0


def test_frames_that_their_owner_refuses_are_counted() -> None:
    def refuse(frames: Sequence[Frame], source: Address) -> None:
        raise Malformed("a view whose starts do not match its members")

    counters: Counter[str] = Counter()
    Receiver(GROUP, ME, refuse, counters).receive([control(Alive())], VIEW)
    assert counters == {"dropped_malformed": 1}
