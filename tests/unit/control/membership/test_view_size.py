"""The largest view: every frame about it can be sent, and read by every member."""

from __future__ import annotations

import pytest

from ringcast.control.membership import view_size
from ringcast.control.membership.view_size import (
    GROUPS_MAX,
    MEMBERS_MAX,
    PEER_BYTES,
    PEER_BYTES_MAX,
    ViewSize,
)
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.codec import decode_frame, encode_frame
from ringcast.core.wire.frames import (
    Ending,
    Flushed,
    Frame,
    Held,
    Install,
    MergeReady,
    Prepare,
    Section,
)
from ringcast.core.wire.pieces import FRAME_MAX

ID = ViewId(2**40, Address(2**63))
BYTES_EACH = PEER_BYTES_MAX // MEMBERS_MAX - PEER_BYTES


def peers(count: int = MEMBERS_MAX) -> tuple[Peer, ...]:
    """Members that take all of the room for bytes as well."""
    text = "x" * (BYTES_EACH // 2)
    return tuple(Peer(Address(2**62 + n), text, text, 2**40) for n in range(count))


def addresses(count: int, first: int = 0) -> tuple[Address, ...]:
    return tuple(Address(2**62 + first + n) for n in range(count))


def endings(count: int) -> tuple[Ending, ...]:
    return tuple(Ending(address, 2**40, ID.coordinator, 1) for address in addresses(count, 5_000))


def views() -> list[Frame]:
    """The largest frames about views: few leave, half leaves, and many groups merge."""
    made: list[Frame] = []
    starts = (2**40,) * MEMBERS_MAX
    for stay in (MEMBERS_MAX, MEMBERS_MAX // 2, 1):
        section = Section(ID, addresses(stay), endings(MEMBERS_MAX - stay))
        made.append(Install(View(ID, peers()), starts, (section,)))
        made.append(MergeReady(ID, peers(), starts, section))
    for gone in (0, 5, 20):
        share = MEMBERS_MAX // (GROUPS_MAX + 1) - gone
        count = share * (GROUPS_MAX + 1)
        sections = tuple(
            Section(ID, addresses(share, n * share), endings(gone)) for n in range(GROUPS_MAX + 1)
        )
        made.append(Install(View(ID, peers(count)), starts[:count], sections))
    held = tuple(Held(address, 2**40, 2**41) for address in addresses(MEMBERS_MAX))
    return [*made, Flushed(ID, 7, held), Prepare(ID, ID, addresses(MEMBERS_MAX), 1)]


@pytest.mark.parametrize("frame", views(), ids=lambda frame: frame.kind)
def test_frames_about_the_largest_view_can_be_sent_and_read(frame: Frame) -> None:
    content = encode_frame(frame)
    assert len(content) <= FRAME_MAX
    assert decode_frame(content) == frame


def test_as_many_members_fit_as_the_bound_says() -> None:
    size = ViewSize(peers(MEMBERS_MAX - 2))
    one, two, three = (Peer(Address(n), "", "") for n in (1, 2, 3))
    assert not size.takes((one, two, three))
    assert not size.takes((one,), endings=2)
    assert size.takes((one,))
    assert size.takes((), endings=1)
    assert not size.takes((two,))


def test_long_names_and_endpoints_take_room() -> None:
    size = ViewSize(())
    long = [Peer(Address(n), "n" * 255, "e" * 512) for n in range(1, MEMBERS_MAX)]
    taken = sum(size.takes((peer,)) for peer in long)
    assert taken == PEER_BYTES_MAX // (PEER_BYTES + 255 + 512)


def test_a_member_of_a_thousand_with_usual_names_has_room() -> None:
    usual = (Peer(Address(n), f"server-{n}.example", f"10.0.{n}.7:65535") for n in range(1_000))
    one_more = Peer(Address(2_000), "one-more", "[2001:db8::1234:5678]:7800")
    assert ViewSize(usual).takes((one_more,))


def test_the_sentence_names_the_bounds() -> None:
    assert view_size.full() == (
        "the group is full: a view has up to 1,024 members, and 196,608 bytes about them"
    )
