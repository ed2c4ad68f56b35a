"""Frames of a hostile process: of every kind, well-formed, with content drawn from a seed.

A **stranger** is in no view and hears nothing: it knows addresses and the shape of frames, and no
view's id. It must change nothing. It sends no VIEW: a joiner that takes it for a coordinator, which
any process of an open group may claim to be, would believe that.

A **hostile member** knows its view, and sends frames in its own name that are not true. What the
group delivers then is not promised; that no other member fails, that memory stays within its
bounds, and that the others go on once it is gone, is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.ranges import RangeSet
from ringcast.core.model.view import NO_VIEW, View, ViewId
from ringcast.core.wire.codec import FRAME_TYPES, encode, group_id
from ringcast.core.wire.frames import RUNS, Data, Frame, FramePiece, Install, UnicastData

STRANGER = "stranger"
FRAMES_MAX = 4
"""Frames in one datagram."""
NUMBERS = (0, 1, 2, 3, 10, 100, 5_000, 2**31, 2**32, 2**61, 2**62, 2**63 - 1)
SEQNOS = (1, 2, 10, 100, 5_000, 2**40, 2**61)
FLAGS = (0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 255)
TEXTS = ("", "a", "nowhere:1", "x" * 500)


class Known(NamedTuple):
    """What a hostile process knows."""

    me: Address
    members: Sequence[Address]
    views: Sequence[ViewId]
    withheld: tuple[type[Frame], ...] = (FramePiece,)
    """Kinds that it does not send."""


def stranger(rng: Random, members: Sequence[Address]) -> Known:
    """A process that is in no view."""
    me = Address(rng.getrandbits(63))
    views = (NO_VIEW, *(ViewId(number, me) for number in (1, 5, 90, 2**32, 2**61, 2**62)))
    return Known(me, (*members, me), views, (FramePiece, Install))


def member(me: Address, view: View) -> Known:
    """A member that knows its view and the ids that may follow it."""
    number, members = view.id.number, view.members
    later = [ViewId(number + step, who) for step in (1, 2, 2**20) for who in (me, members[0])]
    return Known(me, members, (view.id, *later, NO_VIEW, ViewId(2**62, me)))


def draw_datagram(rng: Random, known: Known, group: str = "sim") -> bytes:
    """A datagram with one frame or a few."""
    kinds = [kind for kind in FRAME_TYPES.values() if kind not in known.withheld]
    count = rng.randint(1, FRAMES_MAX)
    drawn = [draw_frame(rng, rng.choice(kinds), known) for _ in range(count)]
    return b"".join(encode(group_id(group), known.me, drawn))


def draw_frame(rng: Random, kind: type[Frame], known: Known) -> Frame:
    """A frame of this kind."""
    if kind in RUNS:
        return _draw_run(rng, kind, known)
    hints = get_type_hints(kind)
    names: tuple[str, ...] = tuple(kind.__slots__)
    return kind(*(_draw(rng, hints[name], known) for name in names))


def _draw_run(rng: Random, kind: type[Frame], known: Known) -> Frame:
    payloads = [rng.randbytes(rng.choice((0, 1, 20, 24, 200))) for _ in range(rng.randint(1, 20))]
    place = (rng.choice(SEQNOS), rng.choice((0, *SEQNOS)), 0, rng.choice(FLAGS))
    nbytes = sum(map(len, payloads))
    if kind is UnicastData:
        return UnicastData(rng.choice(NUMBERS), *place, payloads, nbytes)
    view, origin = rng.choice(known.views), rng.choice(known.members)
    return Data(view, rng.choice(SEQNOS), origin, *place, payloads, nbytes)


def _draw(rng: Random, annotation: object, known: Known) -> Any:
    """A value of a field with this annotation."""
    draw = _SCALARS.get(annotation)
    if draw is not None:
        return draw(rng, known)
    if get_origin(annotation) is tuple:
        item = get_args(annotation)[0]
        return tuple(_draw(rng, item, known) for _ in range(rng.randint(0, 4)))
    record = cast(Callable[..., Any], annotation)
    return record(*(_draw(rng, hint, known) for hint in get_type_hints(record).values()))


def _draw_peer(rng: Random, known: Known) -> Peer:
    address = known.me if rng.random() < 0.7 else rng.choice(known.members)
    return Peer(address, rng.choice(TEXTS), rng.choice(TEXTS))


def _draw_view(rng: Random, known: Known) -> View:
    members = [member for member in known.members if rng.random() < 0.7] or [known.me]
    return View(rng.choice(known.views), tuple(Peer(m, "", "") for m in dict.fromkeys(members)))


def _draw_ranges(rng: Random, known: Known) -> RangeSet:
    first = rng.choice(SEQNOS)
    return RangeSet([(first, first + rng.choice((0, 3, 5_000, 2**40)))])


_SCALARS: dict[object, Callable[[Random, Known], object]] = {
    int: lambda rng, known: rng.choice(NUMBERS),
    str: lambda rng, known: rng.choice(TEXTS),
    bytes: lambda rng, known: rng.randbytes(8),
    Address: lambda rng, known: rng.choice(known.members),
    ViewId: lambda rng, known: rng.choice(known.views),
    Peer: _draw_peer,
    View: _draw_view,
    RangeSet: _draw_ranges,
}
