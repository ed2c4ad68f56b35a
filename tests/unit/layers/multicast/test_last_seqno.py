"""Announcements of the last seqno, on the tick and after a pause."""

from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.reliable.ticker import Ticker
from ringcast.core.wire.frames import Last
from ringcast.layers.multicast.last_seqno import UNREACHED_MAX, UNREACHED_TICKS, LastSeqno
from tests.unit.layers.multicast.parts import A, B, C, Parts, installation

INTERVAL = 0.1


def announcer(
    parts: Parts,
    targets: Sequence[Address] | None = None,
    lacking: dict[Address, int] | None = None,
) -> LastSeqno:
    """lacking: the members at which not all has arrived; the test may change it."""
    ticker, arrived = Ticker(parts.layer, INTERVAL), {} if lacking is None else lacking
    return LastSeqno(
        parts.layer,
        parts.group,
        parts.flush,
        ticker,
        INTERVAL,
        lambda: targets,
        lambda: arrived,
    )


def announced(parts: Parts) -> list[tuple[object, int, int]]:
    """The targets and marks of what was announced."""
    frames = parts.frames()
    return [(to, frame.low, frame.high) for to, frame in frames if isinstance(frame, Last)]


def test_outstanding_messages_are_announced_on_every_tick() -> None:
    parts = Parts()
    last = announcer(parts)
    parts.send(2)
    last.tick()
    last.tick()
    assert announced(parts) == [(None, 0, 2)] * 2


def test_a_tick_after_messages_were_sent_announces_nothing_and_ticks_again() -> None:
    parts = Parts()
    last = announcer(parts)
    parts.send(2)
    last.probe.on_sent(last.tail)
    last.tick()
    assert announced(parts) == []
    last.tick()
    assert announced(parts) == [(None, 0, 2)]


def test_nothing_is_announced_while_the_layers_above_are_about_to_send() -> None:
    parts = Parts()
    last = announcer(parts)
    parts.send(2)
    parts.top.is_pausing = True
    last.tick()
    assert announced(parts) == []


def test_that_nothing_is_outstanding_is_announced_once() -> None:
    parts = Parts()
    last = announcer(parts)
    parts.send(2)
    parts.group.purge_sent(2)
    last.tick()
    last.tick()
    assert announced(parts) == [(None, 2, 2)]
    assert last.announced_low == 2


def test_an_announcement_on_the_tick_may_go_to_some_members_only() -> None:
    parts = Parts()
    last = announcer(parts, [B])
    parts.send(2)
    last.tick()
    assert announced(parts) == [(B, 0, 2)]


def test_a_pause_is_announced_before_the_tick() -> None:
    parts = Parts()
    last = announcer(parts)
    parts.send(2)
    last.probe.on_sent(last.tail)
    parts.env.now = INTERVAL / 5
    assert parts.due() == ["tail"]
    last.probe.on_timer()
    assert announced(parts) == [(None, 0, 2)]


def probe_announces(parts: Parts, last: LastSeqno) -> bool:
    last.probe.on_sent(last.tail)
    parts.env.now += INTERVAL / 5
    last.probe.on_timer()
    return bool(announced(parts))


def test_a_pause_is_not_announced_during_a_view_change_or_without_others() -> None:
    parts = Parts()
    last = announcer(parts)
    parts.send(2)
    assert probe_announces(parts, last)
    parts.flush.freeze(())
    assert not probe_announces(parts, last)
    parts.flush.thaw()
    parts.group.install(installation(A, old=(A, B, C), number=2))
    assert not probe_announces(parts, last)


def test_a_member_at_which_nothing_arrives_is_sent_the_announcement_alone_as_well() -> None:
    parts = Parts()
    lacking = {B: 0, C: 1}
    last = announcer(parts, lacking=lacking)
    parts.send(2)
    for _ in range(UNREACHED_TICKS):
        last.tick()
        lacking[C] += 1
    assert {to for to, _, _ in announced(parts)} == {None}
    last.tick()
    assert announced(parts) == [(None, 0, 2), (B, 0, 2)]
    del lacking[C]
    for _ in range(UNREACHED_TICKS - 1):
        last.tick()
        assert announced(parts) == [(None, 0, 2)]
    last.tick()
    assert announced(parts) == [(None, 0, 2), (B, 0, 2)]
    lacking[B] = 1  # The announcement has reached it, and it was sent something.
    for _ in range(UNREACHED_TICKS):
        last.tick()
        assert announced(parts) == [(None, 0, 2)]


def test_many_members_at_which_nothing_arrives_take_turns() -> None:
    parts = Parts()
    members = [Address(number) for number in range(2, 2 + UNREACHED_MAX + 3)]
    last = announcer(parts, lacking=dict.fromkeys(members, 0))
    parts.send(2)
    told: set[object] = set()
    for _ in range(2 * UNREACHED_TICKS + 1):
        last.tick()
        targets = {to for to, _, _ in announced(parts)}
        assert len(targets) in (1, 1 + UNREACHED_MAX)
        told |= targets
    assert told == {None, *members}
