"""Removes each protection in turn and shows that a named test notices: `make protections`.

A test that cannot fail proves nothing. Each entry names a line of defence of the protocols, how to
take it away, and the test that must then fail; the same test passes with the defence in place.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from ringcast.control.failure_detector import FailureDetectorPart
from ringcast.control.membership.admission import Admission
from ringcast.control.membership.coordinator import Coordinator
from ringcast.control.membership.participant import Participant
from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.reliable import windows
from ringcast.core.reliable.ack_map import AckMap
from ringcast.core.reliable.windows import ReceiveWindow
from ringcast.core.stack.inbox import Inbox
from ringcast.core.stack.part import Installation, Layer
from ringcast.core.wire import codec
from ringcast.core.wire.frames import Ack, Data, Ending, Frame, Last, Merge, Nak
from ringcast.core.wire.layout import VIEW_NUMBER_MAX
from ringcast.layers.flow.layer import FlowLayer
from ringcast.layers.multicast.base import ReliableMulticast
from ringcast.layers.multicast.early_data import EarlyData
from ringcast.layers.multicast.last_seqno import LastSeqno
from ringcast.layers.multicast.nakack4 import NakAck4Layer
from ringcast.layers.multicast.view_flush import ViewFlush
from ringcast.layers.pacing import PacingLayer
from ringcast.layers.sequencer import SequencerLayer
from ringcast.ringbuffer import faulty
from ringcast.ringbuffer import ring as lockfree
from ringcast.services import state_requester as requester
from ringcast.services.state_cutoff import StateCutoff
from ringcast.services.state_requester import StateRequester

CHECKER = "tests/unit/ringbuffer/test_checker.py::"
MULTICAST = "tests/sim/test_multicast.py::"
MEMBERSHIP = "tests/sim/test_membership.py::"
STATE = "tests/sim/test_state.py::"
LARGE = "tests/sim/test_large.py::"
STRANGERS = "tests/sim/test_strangers.py::"
SEQUENCER = "tests/unit/layers/test_sequencer.py::"


def no_second_read() -> None:
    """Let the RingBuffer's add look at the highest delivered only once."""
    lockfree.RingBuffer.add_steps = faulty.NaiveAdd.add_steps  # type: ignore[method-assign, assignment]


def one_null_for_all_laps() -> None:
    """Let the RingBuffer's add take the null of another lap for its own."""
    lockfree.RingBuffer.add_steps = faulty.AnyNull.add_steps  # type: ignore[method-assign, assignment]


def no_last_message_announcement() -> None:
    """Let an idle sender say nothing about its last message."""

    def tick(self: LastSeqno) -> None:
        self.tail.is_fresh = True
        real(self)

    real = LastSeqno.tick
    LastSeqno.tick = tick  # type: ignore[method-assign]
    pauses_are_not_announced()


def pauses_are_not_announced() -> None:
    """Let a sender wait for the tick before it says what it sent last."""
    LastSeqno._announce_tail = lambda self, dest: None  # type: ignore[method-assign]


def leaver_stays_in_the_ack_map() -> None:
    """Let a sender wait for the acks of a member that is gone."""

    def install(self: AckMap, installation: Installation, start: int) -> None:
        kept = {member: self.acks[member] for member in installation.left if member in self.acks}
        real(self, installation, start)
        self.acks.update(kept)

    real = AckMap.install
    AckMap.install = install  # type: ignore[method-assign]


def foreign_acks_count() -> None:
    """Let an ack of a member that is not in the view make an entry in the ack map."""

    def on_ack(self: NakAck4Layer, frame: Ack, source: Address) -> None:
        self.acks.setdefault(source, 0)
        real(self, frame, source)

    real = NakAck4Layer._on_ack
    NakAck4Layer._on_ack = on_ack  # type: ignore[method-assign]


def newcomer_starts_at_zero() -> None:
    """Let a newcomer wait for what was sent and freed before it came."""

    def on_view(self: ReliableMulticast, installation: Installation) -> None:
        if installation.old is None:
            for member in installation.view:
                installation.starts[member] = 0
        real(self, installation)

    real = ReliableMulticast.on_view
    ReliableMulticast.on_view = on_view  # type: ignore[method-assign]


def survivors_do_not_share() -> None:
    """Let a view begin before its members have given each other what a crashed sender sent last."""

    def aim(
        self: ViewFlush, view: ViewId, starts: dict[Address, int], endings: tuple[Ending, ...]
    ) -> None:
        real(self, view, starts, ())

    real = ViewFlush.aim
    ViewFlush.aim = aim  # type: ignore[method-assign]


def who_is_ahead_says_where_a_view_ends() -> None:
    """Let messages of a later view bound what is handed up, though the view that waits says it."""

    def admit(self: EarlyData, sender: Address, window: ReceiveWindow, frame: Data | Last) -> bool:
        aims, self._flush.aims = self._flush.aims, {}
        admitted = real(self, sender, window, frame)
        self._flush.aims = aims
        return admitted

    real = EarlyData.admit
    EarlyData.admit = admit  # type: ignore[method-assign]


def duplicates_are_handed_up() -> None:
    """Let a receiver forget what it has handed up already."""

    def put(self: ReceiveWindow, run: object) -> object:
        handed = real(self, run)  # type: ignore[arg-type]
        return handed or [run]

    real = ReceiveWindow.put
    ReceiveWindow.put = put  # type: ignore[method-assign, assignment]


def no_checksum() -> None:
    """Let every datagram pass for whole."""
    codec.crc32 = lambda *_: 0  # type: ignore[attr-defined]


def a_paused_member_accuses() -> None:
    """Let a member that was asleep blame the others for the silence."""
    FailureDetectorPart._forgive = lambda self: None  # type: ignore[method-assign]


def a_state_counts_before_what_is_in_it() -> None:
    """Let a newcomer take a state with messages that have not come to it."""
    StateRequester._has_come = lambda self: True  # type: ignore[method-assign]


def half_a_state_is_kept() -> None:
    """Let a newcomer not mind that the provider of the state is gone."""
    requester.UNDER_WAY = frozenset()


def a_newcomer_gets_all_messages() -> None:
    """Let a newcomer's application be given what its state contains."""
    StateCutoff.filter = lambda self, events: list(events)  # type: ignore[method-assign]


def messages_stop_the_state() -> None:
    """Let messages for a newcomer alone wait before its state."""
    Inbox.early = property(lambda self: 0, lambda self, value: None)  # type: ignore[assignment]


def everybody_waits_for_the_still_one() -> None:
    """Let a sender wait for a member that stands still, whatever the policy."""
    NakAck4Layer.release = lambda self, member: None  # type: ignore[method-assign]


def a_lost_credit_is_not_asked_for_again() -> None:
    """Let a sender ask for credits only once."""
    FlowLayer._ask_again = lambda self: None  # type: ignore[method-assign]


def fragments_are_acked_one_by_one() -> None:
    """Let a receiver ack fragments, though the ack of the whole message speaks for them."""
    NakAck4Layer.suppress_acks_until = lambda self, sender, up_to: None  # type: ignore[method-assign]


def a_burst_fills_the_sockets() -> None:
    """Let a sender put as much on its way as its window holds."""
    PacingLayer.room = Layer.room  # type: ignore[method-assign]


def an_earlier_attempt_stops_a_merge() -> None:
    """Let a group that has stopped for one attempt at a merge refuse the next."""

    def on_merge(self: Coordinator, frame: Merge, source: Address) -> None:
        if self.change is not None and self.change.proposal != frame.proposal:
            self.part.participant.refuse(frame.proposal, source)
        else:
            real(self, frame, source)

    real = Coordinator.on_merge
    Coordinator.on_merge = on_merge  # type: ignore[method-assign]


def who_is_left_out_of_a_merge_waits() -> None:
    """Let nobody tell a group that the merge it has stopped for is not made."""
    Participant.on_merge_ready = lambda self, frame, source: None  # type: ignore[method-assign]


def only_the_sender_is_asked() -> None:
    """Let a member that lacks a message before a view ask only its sender or its named holder."""
    ViewFlush.request_target = lambda self, sender: self.holders.get(sender, sender)  # type: ignore[method-assign]


def a_view_ends_in_the_order_of_arrival() -> None:
    """Let a member deliver what no ORDER names by arrival, and not by the seniority of senders."""

    def flush(self: SequencerLayer) -> None:
        self._members = (self._members[0], *self._held)
        real(self)

    real = SequencerLayer.flush
    SequencerLayer.flush = flush  # type: ignore[method-assign]


def what_has_arrived_does_not_wait() -> None:
    """Let an ORDER that waits for messages be passed by those that it names later."""

    def follow(self: SequencerLayer) -> None:
        for item in self._script:
            for entry in tuple(getattr(item, "entries", ())):
                if self._arrived.get(entry[0], 0) >= entry[1]:
                    item.entries.remove(entry)  # type: ignore[union-attr]
                    self._deliver_held(*entry)
        real(self)

    real = SequencerLayer._follow_script
    SequencerLayer._follow_script = follow  # type: ignore[method-assign]


def strangers_are_sent_the_window() -> None:
    """Let a sender answer requests of processes that are not in its view."""

    def on_frame(self: ReliableMulticast, frame: Frame, source: Address) -> None:
        if isinstance(frame, Nak):
            self._on_nak(frame, source)
        else:
            real(self, frame, source)

    real = ReliableMulticast.on_frame
    ReliableMulticast.on_frame = on_frame  # type: ignore[method-assign]


def receivers_count_messages_only() -> None:
    """Let a receiver keep as many bytes as its capacity of messages has."""
    windows.BYTES_SLACK = 1 << 60


def every_number_is_believed() -> None:
    """Let any frame raise the number of views as far as it likes."""
    Admission.number_max = VIEW_NUMBER_MAX + 2  # type: ignore[assignment, method-assign]


def a_joiner_need_not_be_there() -> None:
    """Let a JOIN start a view change without a cookie."""
    Admission.has_proved = lambda self, joiner, cookie: True  # type: ignore[method-assign]


class Protection(NamedTuple):
    """A line of defence: how to remove it, and the test that then fails."""

    remove: Callable[[], None]
    test: str


PROTECTIONS = (
    Protection(
        no_second_read,
        CHECKER + "test_a_copy_of_a_message_that_is_being_removed_is_not_added_again",
    ),
    Protection(
        one_null_for_all_laps, CHECKER + "test_of_two_copies_that_come_at_once_one_is_added"
    ),
    Protection(no_last_message_announcement, MULTICAST + "test_the_last_five_of_ten_lost"),
    Protection(
        pauses_are_not_announced,
        "tests/unit/layers/multicast/test_nakack4.py::test_a_lost_last_message_is_repaired_long_before_the_tick",
    ),
    Protection(
        leaver_stays_in_the_ack_map,
        MULTICAST + "test_a_silent_member_blocks_the_sender_until_a_view_without_it",
    ),
    Protection(
        foreign_acks_count,
        MULTICAST + "test_a_late_ack_of_a_departed_member_does_not_hold_the_sender",
    ),
    Protection(
        newcomer_starts_at_zero, MULTICAST + "test_twenty_joins_while_a_sender_runs_flat_out"
    ),
    Protection(
        survivors_do_not_share, MEMBERSHIP + "test_a_sender_crashes_and_the_survivors_agree"
    ),
    Protection(
        who_is_ahead_says_where_a_view_ends,
        MEMBERSHIP + "test_a_member_that_lacks_a_message_at_a_merge_gets_it_at_once",
    ),
    Protection(
        an_earlier_attempt_stops_a_merge,
        MEMBERSHIP + "test_a_merge_that_its_leader_begins_anew_is_one_view_without_a_timeout",
    ),
    Protection(
        who_is_left_out_of_a_merge_waits,
        MEMBERSHIP + "test_a_group_that_a_merge_leaves_out_is_told_so",
    ),
    Protection(
        only_the_sender_is_asked,
        MEMBERSHIP + "test_a_leavers_messages_are_requested_from_the_others",
    ),
    Protection(
        duplicates_are_handed_up,
        MULTICAST + "test_datagrams_that_all_arrive_twice_are_delivered_once",
    ),
    Protection(
        no_checksum,
        "tests/properties/test_codec.py::test_a_hundred_thousand_mutated_datagrams_are_dropped",
    ),
    Protection(
        a_state_counts_before_what_is_in_it,
        STATE + "test_what_only_a_crashed_provider_knew_is_in_no_state",
    ),
    Protection(
        half_a_state_is_kept, STATE + "test_a_provider_crashes_half_way_and_another_goes_on"
    ),
    Protection(
        a_newcomer_gets_all_messages,
        STATE + "test_a_newcomer_under_load_ends_up_with_what_the_others_have",
    ),
    Protection(
        messages_stop_the_state,
        STATE + "test_messages_for_the_newcomer_alone_do_not_keep_the_state_from_coming",
    ),
    Protection(
        everybody_waits_for_the_still_one,
        LARGE + "test_one_still_receiver_costs_the_others_nothing_but_its_timeout[cut off]",
    ),
    Protection(
        a_lost_credit_is_not_asked_for_again,
        "tests/sim/test_flow.py::test_with_every_third_of_them_lost_the_sender_never_hangs[CREDIT]",
    ),
    Protection(
        fragments_are_acked_one_by_one,
        LARGE + "test_acks_are_messages_times_receivers_and_nothing_else",
    ),
    Protection(
        a_burst_fills_the_sockets,
        "tests/unit/layers/test_pacing.py::"
        "test_no_more_is_under_way_than_may_and_everything_gets_through",
    ),
    Protection(
        a_view_ends_in_the_order_of_arrival,
        SEQUENCER + "test_members_that_got_the_same_in_another_sequence_end_a_view_alike",
    ),
    Protection(
        what_has_arrived_does_not_wait,
        SEQUENCER + "test_the_entries_of_an_order_are_followed_in_turn",
    ),
    Protection(
        strangers_are_sent_the_window,
        STRANGERS + "test_a_stranger_that_requests_messages_gets_none[lan]",
    ),
    Protection(
        receivers_count_messages_only,
        STRANGERS + "test_a_member_that_ignores_its_bound_does_not_fill_the_memory_of_others[lan]",
    ),
    Protection(every_number_is_believed, STRANGERS + "test_no_number_freezes_the_coordinator"),
    Protection(
        a_joiner_need_not_be_there,
        STRANGERS + "test_joins_without_a_process_change_no_view[lan]",
    ),
    Protection(
        a_paused_member_accuses,
        "tests/unit/control/test_failure_detector.py::test_a_member_that_was_paused_accuses_no_other",
    ),
)


def main(arguments: list[str]) -> int:
    """Run every pair, each in a process of its own; 0 when each test noticed."""
    if arguments:
        chosen = next(p for p in PROTECTIONS if p.remove.__name__ == arguments[0])
        chosen.remove()
        return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", chosen.test]))
    unnoticed = 0
    for protection in PROTECTIONS:
        name = protection.remove.__name__
        intact = _run([sys.executable, "-m", "pytest", "-q", "-x", protection.test])
        removed = _run([sys.executable, __file__, name])
        noticed = intact == 0 and removed == 1
        unnoticed += not noticed
        verdict = "noticed" if noticed else f"NOT NOTICED (intact {intact}, removed {removed})"
        print(f"{name}: {protection.remove.__doc__}\n    {protection.test}: {verdict}", flush=True)
    print(f"{len(PROTECTIONS)} protections removed, {unnoticed} not noticed")
    return 1 if unnoticed else 0


def _run(command: list[str]) -> int:
    return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
