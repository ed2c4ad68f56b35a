"""Fragments that are received where they belong; guesses that are wrong cost nothing but a copy."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.batch import FRAGMENT
from ringcast.core.model.view import ViewId
from ringcast.core.wire.fastpath import encode_run
from ringcast.core.wire.fragments import Assembly, Cutting, read_header
from ringcast.core.wire.frames import Data
from ringcast.core.wire.layout import FRAGMENT_AT, FRAGMENT_HEADER_SIZE
from ringcast.core.wire.placement import PLACED, Placement
from ringcast.sim.engine.placement import PlainBuffer, place

GROUP, PIECE, FIRST = 7, 100, 11
SENDER, OTHER = Address(0x1234), Address(0x4321)
VIEW = ViewId(3, SENDER)
MESSAGE = bytes(n * 7 % 251 for n in range(10 * PIECE - 30))


def batch(
    begin: int, end: int, sender: Address = SENDER, message: bytes = MESSAGE, number: int = 1
) -> Data:
    """Fragments begin to end - 1 of a message, as their sender sends them at once."""
    cutting = Cutting(message, number, FRAGMENT_HEADER_SIZE + PIECE)
    cutting.next = begin
    some = cutting.cut(end - begin)
    first = FIRST + begin
    return Data(VIEW, 0, sender, first, 2, begin, FRAGMENT, some, some.nbytes, some.size)


def datagrams(run: Data, group: int = GROUP) -> list[bytes]:
    return [b"".join(datagram.buffers) for datagram in encode_run(group, run.origin, run, 1)]


def plain(run: Data | bytes) -> Data:
    """A run whose payloads compare by what is in them."""
    assert isinstance(run, Data)
    return replace(run, payloads=list(map(bytes, run.payloads)))


def begun(sender: Address = SENDER, message: bytes = MESSAGE) -> tuple[Placement, Assembly]:
    """A message of which the first fragment has come, and where the next one may be placed."""
    (fragment,) = batch(0, 1, sender, message).payloads
    header = read_header(fragment)
    assert header is not None
    assembly = Assembly(header, FIRST)
    assembly.use(PlainBuffer(len(message)))
    assembly.add(header, FIRST, fragment)
    placement = Placement(GROUP)
    placement.advertise(sender, assembly)
    return placement, assembly


def read(placement: Placement, *runs: Data) -> Iterator[Data | bytes]:
    """What a stack makes of their datagrams: runs that were placed, or else datagrams."""
    run: Data | None = None
    for datagram in (datagram for each in runs for datagram in datagrams(each)):
        (came,) = place([datagram], placement)
        if came is not PLACED:
            yield bytes(came)
        elif not placement.extend(run):
            run = placement.start(VIEW)
            yield run


def test_fragments_of_one_batch_land_as_one_run() -> None:
    placement, _ = begun()
    (run,) = list(read(placement, batch(1, 5)))
    assert plain(run) == plain(batch(1, 5))


def test_a_message_is_placed_whole_its_shorter_end_included() -> None:
    placement, assembly = begun()
    runs = list(read(placement, batch(1, 5), batch(5, 9), batch(9, 10)))
    assert [run.first for run in runs if isinstance(run, Data)] == [FIRST + 1, FIRST + 5, FIRST + 9]
    for run in runs:
        assert isinstance(run, Data)
        assert assembly.take_placed(run.first, run.payloads)  # type: ignore[arg-type]
    assert assembly.ended
    placement.advertise(SENDER, None)
    whole = assembly.take()
    assert whole == MESSAGE
    assert isinstance(whole, memoryview)
    assert whole.readonly
    assert placement.advertised is None


def test_what_was_placed_in_the_buffer_of_another_is_not_taken() -> None:
    placement, assembly = begun()
    _, other = begun()
    (run,) = list(read(placement, batch(1, 3)))
    assert isinstance(run, Data)
    assert not other.take_placed(run.first, run.payloads)  # type: ignore[arg-type]
    assert not assembly.take_placed(run.first + 1, run.payloads)  # type: ignore[arg-type]
    assert assembly.take_placed(run.first, run.payloads)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("run", "source"),
    [
        (batch(2, 3), SENDER),
        (batch(9, 10), SENDER),
        (batch(1, 2, OTHER), OTHER),
        (batch(1, 2, OTHER), SENDER),
        (batch(1, 2), OTHER),
        (batch(1, 2, number=2), SENDER),
        (batch(1, 2, message=MESSAGE + b"!"), SENDER),
        (replace(batch(1, 2), first=FIRST + 2), SENDER),
        (replace(batch(1, 2), flags=0), SENDER),
        (Data(VIEW, 0, SENDER, 12, 0, 0, 0, [bytes(60_000)], 60_000, 60_000), SENDER),
        (Data(VIEW, 0, SENDER, 12, 0, 0, 0, [b"short"], 5, 5), SENDER),
    ],
)
def test_whatever_else_comes_is_a_datagram_like_any_other(run: Data, source: Address) -> None:
    placement, assembly = begun()
    (expected,) = [b"".join(datagram.buffers) for datagram in encode_run(GROUP, source, run, 1)]
    assert list(place([expected], placement)) == [expected]
    assert placement.advertised is None
    placement.advertise(SENDER, assembly)
    (placed,) = list(read(placement, batch(1, 9)))
    assert plain(placed) == plain(batch(1, 9))


def test_even_nothing_at_all_is_a_datagram() -> None:
    placement, _ = begun()
    (came,) = place([b""], placement)
    assert came is not PLACED
    assert came == b""


def test_a_head_with_a_wrong_bit_is_never_placed() -> None:
    (datagram,) = datagrams(batch(1, 2))
    for at in range(FRAGMENT_AT):
        placement, _ = begun()
        broken = bytearray(datagram)
        broken[at] ^= 4
        assert next(place([bytes(broken)], placement)) == bytes(broken)


def test_a_place_in_which_something_was_placed_is_not_advertised_again() -> None:
    placement, assembly = begun()
    (run,) = list(read(placement, batch(1, 4)))  # On its way up, or held back by a window.
    placement.advertise(SENDER, assembly)
    placed, came = read(placement, batch(4, 5), batch(1, 2))
    assert plain(placed) == plain(batch(4, 5))
    assert isinstance(came, bytes)
    assert plain(run) == plain(batch(1, 4))


def test_what_was_placed_stays_of_its_sender_when_another_is_advertised() -> None:
    placement, _ = begun()
    _, other = begun(OTHER, MESSAGE[::-1])
    (datagram,) = datagrams(batch(1, 2))
    assert next(place([datagram], placement)) is PLACED
    run = placement.start(VIEW)
    placement.advertise(OTHER, other)  # Another sender's run goes up before this one is looked at.
    assert plain(run) == plain(batch(1, 2))
    (theirs,) = list(read(placement, batch(1, 4, OTHER, MESSAGE[::-1])))
    assert plain(theirs) == plain(batch(1, 4, OTHER, MESSAGE[::-1]))


def test_a_message_that_is_given_up_gets_nothing_more() -> None:
    placement, assembly = begun()
    list(read(placement, batch(1, 2)))
    assembly.give_up("a part of it was skipped")
    (came,) = list(read(placement, batch(2, 3)))
    assert isinstance(came, bytes)
    placement.advertise(SENDER, assembly)
    assert placement.advertised is None


def test_a_run_of_a_later_view_says_so() -> None:
    placement, _ = begun()
    later = replace(batch(1, 2), view=ViewId(4, OTHER))
    (run,) = list(read(placement, later))
    assert plain(run) == plain(later)
