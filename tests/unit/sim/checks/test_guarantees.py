"""The checker itself: each guarantee, broken on purpose, is noticed; what is right passes."""

from collections.abc import Sequence

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import FRAGMENT, Batch
from ringcast.core.model.events import Skipped, ViewChange
from ringcast.core.model.view import View, ViewId
from ringcast.core.wire.fragments import Cutting
from ringcast.core.wire.frames import Data
from ringcast.core.wire.layout import FRAGMENT_HEADER_SIZE
from ringcast.guarantees import Promises
from ringcast.sim.checks.guarantees import Checker, MemberRecord

A, B, C = Address(1), Address(2), Address(3)


def view(number: int, *members: Address) -> View:
    return View(ViewId(number, members[0]), tuple(Peer(m, "abc"[m - 1], "") for m in members))


class Group:
    """Three records in one view."""

    def __init__(self, promises: Promises | None = None) -> None:
        self.checker = Checker(promises or Promises())
        self.records = {m: MemberRecord("abc"[m - 1], m) for m in (A, B, C)}
        self.view = view(1, A, B, C)
        for record in self.records.values():
            self.checker.add(record)
            self.install(record.address, self.view, joined=(A, B, C))

    def install(
        self,
        member: Address,
        new: View,
        joined: Sequence[Address] = (),
        left: Sequence[Address] = (),
    ) -> None:
        self.checker.took(self.records[member], ViewChange(new, tuple(joined), tuple(left)))

    def send(self, sender: Address, *payloads: bytes, accept: bool = True) -> None:
        """The application of a member sends, and its stack numbers and sends at once."""
        record = self.records[sender]
        assert record.view is not None
        if accept:
            self.checker.accepted(record, payloads)
        size = sum(map(len, payloads))
        first = record.numbered + 1
        self.checker.sent(record, Data(record.view.id, 0, sender, first, 0, 0, 0, payloads, size))

    def give(self, member: Address, sender: Address, first: int, *payloads: bytes) -> None:
        size = sum(map(len, payloads))
        self.checker.took(self.records[member], Batch(sender, payloads, size, first=first))

    @property
    def found(self) -> str:
        return "; ".join(violation.text for violation in self.checker.violations)


@pytest.fixture
def group() -> Group:
    return Group()


def test_what_was_sent_may_be_given_in_other_pieces(group: Group) -> None:
    group.send(A, b"1", b"2", b"3")
    group.send(A, b"4")
    for member in (A, B, C):
        group.give(member, A, 1, b"1", b"2")
        group.give(member, A, 3, b"3", b"4")
    assert group.found == ""


def test_a_piece_may_lie_across_two_that_are_as_long_as_itself(group: Group) -> None:
    group.send(A, b"1", b"2")
    group.send(A, b"3", b"4")
    group.give(B, A, 1, b"1")
    group.give(B, A, 2, b"2", b"3")
    assert group.found == ""


def test_a_gap_is_noticed(group: Group) -> None:
    group.send(A, b"1", b"2", b"3")
    group.give(B, A, 1, b"1")
    group.give(B, A, 3, b"3")
    assert "a's messages 3-3 when 2 was due" in group.found


def test_a_message_that_is_delivered_twice_is_noticed(group: Group) -> None:
    group.send(A, b"1", b"2")
    group.give(B, A, 1, b"1", b"2")
    group.give(B, A, 2, b"2")
    assert "though 2 was its last" in group.found


def test_a_message_with_other_bytes_is_noticed(group: Group) -> None:
    group.send(A, b"1", b"2")
    group.give(B, A, 1, b"1", b"x")
    assert "other bytes" in group.found


def test_messages_with_their_borders_moved(group: Group) -> None:
    group.send(A, b"ab", b"c")
    group.give(B, A, 1, b"a", b"bc")
    assert "other bytes" in group.found


def test_what_was_never_sent(group: Group) -> None:
    group.send(A, b"1")
    group.give(B, A, 1, b"1", b"2")
    group.give(C, B, 1, b"1")
    assert "though 1 was its last" in group.found
    assert "not sent in view" in group.found


def test_a_sender_outside_the_view(group: Group) -> None:
    group.send(A, b"1")
    group.install(B, view(2, B, C), left=[A])
    group.give(B, A, 1, b"1")
    assert "not in its view" in group.found


def test_a_message_of_another_view(group: Group) -> None:
    group.send(A, b"1")
    group.install(B, view(2, A, B), left=[C])
    group.give(B, A, 1, b"1")
    assert "not sent in view 2@1" in group.found


def test_the_first_message_of_a_view_is_due_first(group: Group) -> None:
    group.records[A].numbered = 10
    group.send(A, b"1", b"2")
    group.give(B, A, 12, b"2")
    assert "when 11 was due" in group.found


def test_what_a_sender_sends_without_having_been_given_it(group: Group) -> None:
    group.send(A, b"1", accept=False)
    assert "that it was not given" in group.found


def test_a_message_that_was_held_back_belongs_to_the_view_in_which_it_left(group: Group) -> None:
    group.checker.accepted(group.records[A], [b"1"])
    group.install(A, view(2, A, B), left=[C])
    group.install(B, view(2, A, B), left=[C])
    group.send(A, b"1", accept=False)
    group.give(B, A, 1, b"1")
    assert group.found == ""


def test_a_message_in_fragments_counts_as_its_last_one(group: Group) -> None:
    cutting = Cutting(b"x" * 100, 1, FRAGMENT_HEADER_SIZE + 40)
    fragments = [*cutting.cut(10), *cutting.cut(10)]
    assert len(fragments) == 3
    group.checker.accepted(group.records[A], [b"x" * 100])
    frame = Data(group.view.id, 0, A, 1, 0, 0, FRAGMENT, fragments, 0)
    group.checker.sent(group.records[A], frame)
    group.checker.purged(group.records[A], 2)
    assert group.found == "", "fragments of a message that is not whole may be freed"
    group.give(B, A, 3, b"x" * 100)
    assert group.found == ""
    group.checker.purged(group.records[A], 3)
    assert "a waits for 3" in group.found


def test_members_that_go_on_together_differ(group: Group) -> None:
    group.send(A, b"1", b"2")
    group.give(B, A, 1, b"1", b"2")
    group.give(C, A, 1, b"1")
    for member in (B, C):
        group.install(member, view(2, B, C), left=[A])
    assert "c: delivered 1 messages of a in View(1@1: a, b, c)" in str(group.checker.violations[0])


def test_a_stack_that_does_not_retain_may_differ_in_what_a_crashed_sender_sent_last() -> None:
    group = Group(Promises(agreement=False))
    group.send(A, b"1", b"2")
    group.give(B, A, 1, b"1", b"2")
    for member in (B, C):
        group.install(member, view(2, B, C), left=[A])
    assert group.found == ""


def test_members_that_go_different_ways_may_differ(group: Group) -> None:
    group.send(A, b"1", b"2")
    group.give(B, A, 1, b"1", b"2")
    group.install(B, view(2, B), left=[A, C])
    group.install(C, view(2, C), left=[A, B])
    assert group.found == ""


def test_a_sender_that_goes_on_without_its_own_messages(group: Group) -> None:
    group.send(A, b"1")
    group.install(A, view(2, A, B), left=[C])
    assert "before it had all of its own messages" in group.found


def test_views_that_go_back_or_lack_their_member_or_differ(group: Group) -> None:
    group.install(A, view(1, A, B), left=[C])
    assert "others know it as" in group.found
    assert "after View(1@1: a, b, c)" in group.found
    group.install(B, view(2, A, C), left=[B])
    assert "is not in it" in group.found


def test_the_wrong_leavers_are_noticed(group: Group) -> None:
    group.install(A, view(2, A, B))
    assert "wrong joiners or leavers" in group.found


def test_a_member_that_left_and_returned_is_named_twice(group: Group) -> None:
    group.install(A, view(3, A, B, C), joined=[C], left=[C])
    assert group.found == ""


def test_freeing_what_a_member_lacks(group: Group) -> None:
    group.send(A, b"1", b"2")
    group.give(A, A, 1, b"1", b"2")
    group.give(B, A, 1, b"1", b"2")
    group.give(C, A, 1, b"1")
    group.checker.purged(group.records[A], 1)
    assert group.found == ""
    group.checker.purged(group.records[A], 2)
    assert "freed its messages up to 2, but c waits for 2" in group.found


@pytest.mark.parametrize("came_back", [True, False])
def test_a_sender_may_free_messages_of_no_use_to_a_returned_member(
    group: Group, came_back: bool
) -> None:
    """Its application is busy: it has not heard that it was away, nor that it came back."""
    group.send(A, b"1", b"2")
    group.give(A, A, 1, b"1", b"2")
    back = [C] if came_back else []
    group.install(A, view(2, A, B, C), joined=back, left=back)
    group.install(A, view(3, A, C), left=[B])
    group.checker.purged(group.records[A], 2)
    assert ("c waits for 1" in group.found) is not came_back


def test_a_skip_is_a_violation_unless_the_stack_says_so() -> None:
    for complete in (True, False):
        group = Group(Promises(complete=complete))
        group.send(A, b"1", b"2", b"3")
        group.give(B, A, 1, b"1")
        group.checker.took(group.records[B], Skipped(A, 2, 2, "too late"))
        group.give(B, A, 3, b"3")
        assert ("skipped 2-2" in group.found) == complete
        assert "due" not in group.found


def test_a_member_that_is_behind_is_noticed(group: Group) -> None:
    group.send(A, b"1", b"2")
    for member in (A, B):
        group.give(member, A, 1, b"1", b"2")
    behind = group.checker.behind(group.view, list(group.records.values()))
    assert behind == ["c has 0 of 2 messages of a"]


def test_memory_is_freed_when_all_receivers_have_read() -> None:
    group = Group()
    for number in range(10_000):
        group.send(A, b"x")
        for member in (A, B, C):
            group.give(member, A, number + 1, b"x")
    stream = group.checker._streams[group.view.id][A]
    assert len(stream._runs) < 200
    assert group.found == ""


def unicast(group: Group, first: int, *payloads: bytes) -> None:
    size = sum(map(len, payloads))
    group.checker.took(group.records[B], Batch(A, payloads, size, dest=B, first=first))


def test_a_pair_is_read_once_and_in_order(group: Group) -> None:
    group.checker.pairs.sent(A, B, [b"1", b"2", b"3"])
    unicast(group, 1, b"1")
    unicast(group, 2, b"2", b"3")
    assert group.found == ""
    unicast(group, 3, b"3")
    assert "not the messages that were due" in group.found


def test_a_pair_may_lose_what_was_under_way_when_it_was_parted(group: Group) -> None:
    group.checker.pairs.sent(A, B, [b"1", b"2", b"3"])
    unicast(group, 1, b"1")
    group.checker.pairs.parted(A, B)
    group.checker.pairs.sent(A, B, [b"4", b"5"])
    unicast(group, 1, b"4")
    assert group.found == ""
    unicast(group, 1, b"2")
    assert "not the messages that were due" in group.found


def test_a_pair_may_lose_nothing_else(group: Group) -> None:
    group.checker.pairs.parted(A, B)
    group.checker.pairs.sent(A, B, [b"1", b"2"])
    unicast(group, 2, b"2")
    assert "not the messages that were due" in group.found
