"""Fragments that are received where they belong; guesses that are wrong cost nothing but a copy."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ringcast.core.address import Address
from ringcast.core.batch import FRAGMENT
from ringcast.core.express import encode_run
from ringcast.core.fragments import FRAGMENT_HEADER_SIZE, Assembly, Cutting, read_header
from ringcast.core.frames import Data
from ringcast.core.landing import HEADS_SIZE, LANDED, Landing
from ringcast.core.view import ViewId
from ringcast.sim.landing import PlainRoom, land

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


def begun(sender: Address = SENDER, message: bytes = MESSAGE) -> tuple[Landing, Assembly]:
    """A message of which the first fragment has come, and where the next one may land."""
    (fragment,) = batch(0, 1, sender, message).payloads
    header = read_header(fragment)
    assert header is not None
    assembly = Assembly(header, FIRST)
    assembly.settle(PlainRoom(len(message)))
    assembly.add(header, FIRST, fragment)
    landing = Landing()
    landing.group = GROUP
    landing.aim(sender, assembly)
    return landing, assembly


def read(landing: Landing, *runs: Data) -> Iterator[Data | bytes]:
    """What a stack makes of their datagrams: runs that have landed, or else datagrams."""
    run: Data | None = None
    for datagram in (datagram for each in runs for datagram in datagrams(each)):
        (came,) = land([datagram], landing)
        if came is not LANDED:
            yield bytes(came)
        elif not landing.goes_on(run):
            run = landing.begin(VIEW)
            yield run


def test_fragments_of_one_batch_land_as_one_run() -> None:
    landing, _ = begun()
    (run,) = list(read(landing, batch(1, 5)))
    assert plain(run) == plain(batch(1, 5))


def test_a_message_lands_whole_its_shorter_end_included() -> None:
    landing, assembly = begun()
    runs = list(read(landing, batch(1, 5), batch(5, 9), batch(9, 10)))
    assert [run.first for run in runs if isinstance(run, Data)] == [FIRST + 1, FIRST + 5, FIRST + 9]
    for run in runs:
        assert isinstance(run, Data)
        assert assembly.take_landed(run.first, run.payloads)  # type: ignore[arg-type]
    assert assembly.ended
    landing.aim(SENDER, None)
    whole = assembly.take()
    assert whole == MESSAGE
    assert isinstance(whole, memoryview)
    assert whole.readonly
    assert landing.offer is None


def test_what_has_landed_in_the_room_of_another_is_not_taken() -> None:
    landing, assembly = begun()
    _, other = begun()
    (run,) = list(read(landing, batch(1, 3)))
    assert isinstance(run, Data)
    assert not other.take_landed(run.first, run.payloads)  # type: ignore[arg-type]
    assert not assembly.take_landed(run.first + 1, run.payloads)  # type: ignore[arg-type]
    assert assembly.take_landed(run.first, run.payloads)  # type: ignore[arg-type]


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
    landing, assembly = begun()
    (expected,) = [b"".join(datagram.buffers) for datagram in encode_run(GROUP, source, run, 1)]
    assert list(land([expected], landing)) == [expected]
    assert landing.offer is None
    landing.aim(SENDER, assembly)
    (landed,) = list(read(landing, batch(1, 9)))
    assert plain(landed) == plain(batch(1, 9))


def test_even_nothing_at_all_is_a_datagram() -> None:
    landing, _ = begun()
    (came,) = land([b""], landing)
    assert came is not LANDED
    assert came == b""


def test_a_head_with_a_wrong_bit_never_lands() -> None:
    (datagram,) = datagrams(batch(1, 2))
    for at in range(HEADS_SIZE):
        landing, _ = begun()
        broken = bytearray(datagram)
        broken[at] ^= 4
        assert next(land([bytes(broken)], landing)) == bytes(broken)


def test_a_place_in_which_something_has_landed_is_not_offered_again() -> None:
    landing, assembly = begun()
    (run,) = list(read(landing, batch(1, 4)))  # On its way up, or held back by a window.
    landing.aim(SENDER, assembly)
    landed, came = read(landing, batch(4, 5), batch(1, 2))
    assert plain(landed) == plain(batch(4, 5))
    assert isinstance(came, bytes)
    assert plain(run) == plain(batch(1, 4))


def test_what_has_landed_stays_of_its_sender_when_the_aim_changes() -> None:
    landing, _ = begun()
    _, other = begun(OTHER, MESSAGE[::-1])
    (datagram,) = datagrams(batch(1, 2))
    assert next(land([datagram], landing)) is LANDED
    run = landing.begin(VIEW)
    landing.aim(OTHER, other)  # Somebody else's run goes up before this one is looked at.
    assert plain(run) == plain(batch(1, 2))
    (theirs,) = list(read(landing, batch(1, 4, OTHER, MESSAGE[::-1])))
    assert plain(theirs) == plain(batch(1, 4, OTHER, MESSAGE[::-1]))


def test_a_message_that_is_given_up_gets_nothing_more() -> None:
    landing, assembly = begun()
    list(read(landing, batch(1, 2)))
    assembly.give_up("a part of it was skipped")
    (came,) = list(read(landing, batch(2, 3)))
    assert isinstance(came, bytes)
    landing.aim(SENDER, assembly)
    assert landing.offer is None


def test_a_run_of_a_later_view_says_so() -> None:
    landing, _ = begun()
    later = replace(batch(1, 2), view=ViewId(4, OTHER))
    (run,) = list(read(landing, later))
    assert plain(run) == plain(later)
