"""What members tell each other of senders that one of them does not hear."""

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.frames import KnownSeqnos, SenderMark
from ringcast.layers.multicast.peer_repair import PeerRepair, SilentSenders
from tests.unit.layers.multicast.parts import A, B, C, D, Parts, installation, run

VIEW = ViewId(1, A)


class Receiver(Parts):
    """A member A in a view with B, C and D."""

    def __init__(self, keep: bool = True) -> None:
        super().__init__(keep)
        self.group.install(installation(A, B, C, D, old=(A, B, C)))
        self.repair = PeerRepair(self.env, self.group)
        self.silence = SilentSenders(self.env, self.group, self.flush, self.gaps, self.repair)

    def receive(self, sender: Address, count: int) -> None:
        """The first messages of a sender arrive."""
        self.group.windows[sender].put(run(1, count, sender))

    def told(self, source: Address, *marks: tuple[Address, int], view: ViewId = VIEW) -> None:
        """A member says what it has."""
        self.silence.on_known(KnownSeqnos(view, tuple(SenderMark(*mark) for mark in marks)), source)

    def high(self, sender: Address) -> int:
        """The last message of a sender that is known to exist."""
        return self.group.windows[sender].high


def test_the_other_members_are_asked_in_turn_about_a_silent_sender() -> None:
    member = Receiver()
    member.receive(B, 3)
    for _ in range(3):
        member.silence.note([B])
    question = KnownSeqnos(VIEW, (SenderMark(B, 3),))
    assert member.frames() == [(C, question), (D, question), (C, question)]
    assert member.repair.silent == {B}


def test_no_member_is_asked_when_none_is_silent_or_all_are_or_a_view_changes() -> None:
    member = Receiver()
    member.silence.note([])
    member.silence.note([B, C, D])
    member.flush.freeze(())
    member.silence.note([B])
    assert member.frames() == []


def test_a_member_that_has_more_says_so_and_one_that_has_not_is_quiet() -> None:
    member = Receiver()
    member.receive(B, 5)
    member.told(D, (B, 5), (C, 0), (Address(99), 0))
    assert member.frames() == []
    member.told(D, (B, 4), (C, 0))
    assert member.frames() == [(D, KnownSeqnos(VIEW, (SenderMark(B, 5),)))]


def test_what_waits_behind_a_gap_or_is_not_kept_is_not_told() -> None:
    member = Receiver()
    member.group.windows[B].put(run(3, 2, B))
    member.told(D, (B, 0))
    assert member.frames() == []
    fleeting = Receiver(keep=False)
    fleeting.receive(B, 5)
    fleeting.told(D, (B, 0))
    assert fleeting.frames() == []


def test_messages_that_another_member_has_are_requested() -> None:
    member = Receiver()
    member.receive(B, 2)
    member.silence.note([B])
    member.told(C, (B, 5))
    assert member.high(B) == 5
    member.env.now += 1.0
    member.gaps.on_timer()
    ((sender, wanted),) = member.requested
    assert (sender, list(wanted)) == (B, [(3, 5)])


def test_members_that_were_not_asked_are_not_believed() -> None:
    member = Receiver()
    member.told(C, (B, 5))  # B is not silent.
    member.silence.note([B])
    member.told(D, (B, 5))  # C was asked.
    member.told(Address(99), (B, 5))
    assert member.high(B) == 0
    assert member.env.counters["dropped_not_member"] == 1
    member.silence.note([])
    member.told(C, (B, 5))  # B is heard again.
    assert member.high(B) == 0


def test_what_was_said_in_another_view_or_while_one_changes_counts_for_nothing() -> None:
    member = Receiver()
    member.silence.note([B])
    member.told(C, (B, 5), view=ViewId(2, A))
    member.flush.freeze(())
    member.told(C, (B, 5))
    assert member.high(B) == 0
    member.flush.thaw()
    member.silence.clear()
    member.told(C, (B, 5))
    assert member.high(B) == 0
