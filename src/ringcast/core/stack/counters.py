"""The register of counters: what each one counts, for metrics, docs and messages.

A protocol of a user declares its own ones beside its class: `declare("stamped", "messages",
"Messages that were stamped.")`.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.errors import ConfigError


class Declared(NamedTuple):
    """One counter."""

    name: str
    unit: str
    """What is counted: messages, datagrams, bytes, frames, times, ms …"""
    about: str
    """A sentence."""


_declared: dict[str, Declared] = {}


def declare(name: str, unit: str, about: str) -> str:
    """Declare a counter; returns its name. Raises ConfigError when another one has the name.

    A name that ends with "*" stands for all that begin like it.
    """
    made = Declared(name, unit, about)
    if _declared.get(name, made) != made:
        raise ConfigError(f"there is a counter {name}: {_declared[name].about} Name another")
    _declared[name] = made
    return name


def declared(name: str) -> Declared | None:
    """The counter with this name."""
    found = _declared.get(name)
    if found is None:
        families = (one for one in _declared.values() if one.name.endswith("*"))
        found = next((one for one in families if name.startswith(one.name[:-1])), None)
    return found


def all_declared() -> list[Declared]:
    """Every counter, by name."""
    return [_declared[name] for name in sorted(_declared)]


for _name, _unit, _about in (
    (
        "answered_for_coordinator",
        "frames",
        "Joiners that this member answered, since the coordinator did not.",
    ),
    ("begun_anew", "messages", "Large messages begun anew, since members joined while they left."),
    ("blocked_ms_*", "ms", "How long sends to the group waited, by what they waited for."),
    ("calls", "connections", "Connections that this member opened."),
    ("caught_up", "members", "Released or excused members that have caught up."),
    ("credit_requests_repeated", "frames", "Requests for credits that were repeated."),
    ("credit_rounds", "rounds", "Times that this sender asked for credits."),
    ("credits_forced", "answers", "Credits given to an urgent request, though data is missing."),
    ("declared_dead", "times", "Times that a view was made without a suspected member."),
    ("dropped_backlog", "queues", "Queues of messages to a member that left."),
    ("dropped_bad_fragment", "messages", "Fragments that do not belong where they arrived."),
    (
        "dropped_buffer_full",
        "datagrams",
        "Datagrams that the kernel dropped: no room in its buffer, or not of the group.",
    ),
    ("dropped_bytes", "bytes", "Bytes that waited for a connection which was closed."),
    ("dropped_closed_connection", "frames", "Frames of a unicast connection that is closed."),
    ("dropped_foreign_ack", "frames", "Acks from outside the view, or for more than was sent."),
    ("dropped_incomplete", "messages", "Incomplete messages that were given up."),
    ("dropped_malformed", "datagrams", "Datagrams that cannot be parsed."),
    ("dropped_no_services", "messages", "Service messages to a member without services."),
    ("dropped_not_for_me", "datagrams", "Datagrams for another member."),
    ("dropped_not_member", "frames", "Frames of senders outside the view."),
    ("dropped_old_view", "frames", "Frames of a former view."),
    ("dropped_on_behalf", "frames", "Messages of a sender that another member may not repeat."),
    ("dropped_on_purpose", "datagrams", "Datagrams that the protocol Faults dropped."),
    ("dropped_oversized", "frames", "Control frames too large to be sent, even in pieces."),
    ("dropped_parking_full", "frames", "Frames of a coming view that the buffer did not hold."),
    ("dropped_past_window", "messages", "Messages that did not fit the window of their sender."),
    ("dropped_queue_full", "datagrams", "Datagrams that a full send queue did not take."),
    ("dropped_remote", "datagrams", "Datagrams that were refused for another reason."),
    ("dropped_replayed", "datagrams", "Sealed datagrams that were opened before, or are too old."),
    ("dropped_sealed", "datagrams", "Datagrams of a closed group; this member has no key."),
    ("dropped_send_*", "datagrams", "Datagrams that the kernel did not send, by its error."),
    ("dropped_service_message", "messages", "Service messages that could not be read."),
    ("dropped_service_queue_full", "messages", "Service messages that found a full queue."),
    ("dropped_too_large", "datagrams", "Datagrams above what the interface takes."),
    ("dropped_unknown_flags", "messages", "Messages with a flag that no protocol here knows."),
    ("dropped_unknown_target", "datagrams", "Datagrams to a member whose address is not known."),
    ("dropped_unowned", "frames", "Frames of a protocol that this stack does not have."),
    ("dropped_unreachable", "datagrams", "Datagrams to an endpoint without a connection."),
    ("dropped_unsealed", "datagrams", "Datagrams without a seal, in a closed group."),
    ("dropped_while_leaving", "messages", "Messages that arrived while this member left."),
    ("dropped_stranger_view", "frames", "Views sent by a process that cannot make the next view."),
    ("dropped_view_number", "frames", "Frames with a view number that no group can have."),
    ("dropped_wrong_group", "datagrams", "Datagrams of another group."),
    ("dropped_wrong_key", "datagrams", "Sealed datagrams that no key of this member opens."),
    ("dropped_wrong_version", "datagrams", "Datagrams of another version of the protocol."),
    ("duplicate_fragments", "fragments", "Fragments that arrived twice."),
    ("excused", "members", "Members that a large message was freed without."),
    ("expelled", "times", "Times that the others made a view without this member."),
    ("gave_up", "messages", "Missing messages that this member no longer waits for."),
    ("hints", "members", "Signs that a member has crashed, each verified at once."),
    ("held_back_ms", "ms", "Time that slow members held this sender back."),
    ("late_acks", "frames", "Acks of whole messages that arrived after the sender went on."),
    ("late_answers", "messages", "Answers to calls that were no longer waited for."),
    ("failed_merges", "times", "Merges for which members were stopped, and no group came."),
    ("pairs_parted", "times", "Members evicted, since another member could not reach them."),
    ("passed_over", "members", "Members whose answer Pacing no longer waited for."),
    ("paused", "times", "Times that this process got no turn for long."),
    ("put_aside", "messages", "Messages put aside while the application was blocked in a send."),
    ("receive_*", "times", "Errors of the socket while receiving, by their name."),
    ("receive_buffer", "bytes", "The size of the socket's receive buffer."),
    ("received_bytes", "bytes", "Bytes received."),
    ("received_datagrams", "datagrams", "Datagrams received."),
    ("received_joiners", "datagrams", "Of processes outside the view, to join or to merge."),
    ("received_strangers", "datagrams", "Datagrams of processes that are not in the view."),
    ("refused_connections", "connections", "Connections refused, since there were too many."),
    ("refused_full", "frames", "Joiners, and groups to merge with, for which a view had no room."),
    ("refused_stack", "frames", "Requests to join or merge of members with another stack."),
    ("released", "members", "Members that this sender stopped waiting for."),
    ("reminders", "frames", "Reminders to ack a large message."),
    ("requested", "messages", "Missing messages that this member asked for."),
    ("resent", "messages", "Messages that this member sent again."),
    ("resent_bytes", "bytes", "Bytes of messages to the group that this member sent again."),
    ("rounds", "rounds", "Rounds of stability that this coordinator finished."),
    ("second_votes", "frames", "Votes of members that had voted in the same round."),
    ("sent_bytes", "bytes", "Bytes sent."),
    ("sent_datagrams", "datagrams", "Datagrams sent."),
    ("sent_without_credits", "messages", "Messages sent without credits, past max_block_times."),
    ("skipped", "messages", "Messages that were freed before this member had them."),
    ("skipped_application_behind", "messages", "Large messages skipped by a slow application."),
    ("skipped_incomplete", "messages", "Large messages skipped, since a part is missing."),
    ("slow_evicted", "members", "Slow members that were evicted."),
    ("slow_skipped", "members", "Slow members that were skipped."),
    ("throttled_accepts", "times", "Times that callers had to wait, since too many called."),
    ("throttled_reads", "times", "Times that reading from a connection had to wait its turn."),
    ("undelivered", "messages", "Large messages that a member did not ack in time."),
    ("unicast_dropped_unacked", "messages", "Messages to a member that left before its ack."),
    ("unicast_restarted", "connections", "Unicast connections that were begun anew."),
):
    declare(_name, _unit, _about)
