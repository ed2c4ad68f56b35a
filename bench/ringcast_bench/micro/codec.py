"""What a message costs on its way to bytes and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import decode, encode
from ringcast.core.wire.frames import Ack, Data, Frame, Nak
from ringcast_bench.micro.timing import Case, Work

GROUP, SENDER = 7, Address(1)
VIEW = ViewId(1, SENDER)
DATAGRAM = 60_000


def cases(messages: int) -> Iterator[Case]:
    """Runs of a datagram each, of like and of unlike messages, and frames that steer."""
    contents = {
        "1,000 bytes": _run([b"x" * 1_000] * (DATAGRAM // 1_000)),
        "100 bytes": _run([b"x" * 100] * (DATAGRAM // 100)),
        "100 to 163 bytes": _run([b"x" * (100 + n % 64) for n in range(400)]),
        "one of 100 bytes": _run([b"x" * 100]),
    }
    for name, frame in contents.items():
        times = max(1, messages // len(frame.payloads))
        yield Case(f"codec: encode, {name}", _encoding([frame], len(frame.payloads), times))
        yield Case(f"codec: decode, {name}", _decoding([frame], len(frame.payloads), times))
    control: dict[str, Frame] = {
        "ACK": Ack(12_345),
        "NAK of 16 ranges": Nak(SENDER, RangeSet((100 * n, 100 * n + 10) for n in range(1, 17))),
    }
    for name, steering in control.items():
        yield Case(f"codec: encode, {name}", _encoding([steering], 1, messages // 50))
        yield Case(f"codec: decode, {name}", _decoding([steering], 1, messages // 50))


def _run(payloads: list[bytes]) -> Data:
    sizes = set(map(len, payloads))
    return Data(
        view=VIEW,
        start=0,
        origin=SENDER,
        first=1,
        low=0,
        sent_at=1,
        flags=0,
        payloads=payloads,
        nbytes=sum(map(len, payloads)),
        size=sizes.pop() if len(sizes) == 1 else 0,
    )


def _encoding(frames: Sequence[Frame], messages: int, times: int) -> Callable[[], Work]:
    def work() -> int:
        for _ in range(times):
            encode(GROUP, SENDER, frames)
        return messages * times

    return lambda: work


def _decoding(frames: Sequence[Frame], messages: int, times: int) -> Callable[[], Work]:
    datagram = b"".join(encode(GROUP, SENDER, frames))

    def work() -> int:
        for _ in range(times):
            decode(datagram, GROUP)
        return messages * times

    return lambda: work
