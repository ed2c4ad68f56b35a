"""The register of timers: what each one waits for, and what sets how long, for docs and messages.

A timer belongs to the role of the part that sets it. A protocol of a user declares its own ones
beside its class: `declare_timer("stamp", "flush", "Stamp.interval", "Sends what was stamped.")`.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.errors import ConfigError


class DeclaredTimer(NamedTuple):
    """One timer of one role."""

    role: str
    name: str
    length: str
    """How long it runs: a setting, or what else decides it."""
    about: str
    """A sentence: what is done when it is due."""
    unit: str = "s"


_declared: dict[tuple[str, str], DeclaredTimer] = {}


def declare_timer(role: str, name: str, length: str, about: str) -> str:
    """Declare a timer; returns its name. Raises ConfigError when the role has another one so named.

    The name "#" stands for all that are numbers.
    """
    made = DeclaredTimer(role, name, length, about)
    known = _declared.setdefault((role, name), made)
    if known != made:
        raise ConfigError(f"{role} has a timer {name}: {known.about} Name another")
    return name


def declared_timer(role: str, name: str) -> DeclaredTimer | None:
    """The timer with this name of the part with this role."""
    return _declared.get((role, "#" if name.isdecimal() else name))


def all_declared_timers() -> list[DeclaredTimer]:
    """Every timer, by role and name."""
    return [_declared[key] for key in sorted(_declared)]


_RETRY = "Membership.retry, doubled up to retry_max"

for _role, _name, _length, _about in (
    (
        "discovery",
        "ask",
        "Discovery.interval; in a group merge_interval",
        "Searches for a group to join, or for other groups to merge with.",
    ),
    (
        "discovery",
        "answer",
        "Discovery.interval, by rank",
        "Answers a joiner in the place of a coordinator that did not.",
    ),
    (
        "failure",
        "tick",
        "FailureDetector.interval",
        "Says that this member is alive, and looks which member was not heard.",
    ),
    (
        "failure",
        "verify",
        "FailureDetector.verify",
        "Suspects a member that was probed and has not answered.",
    ),
    ("flow", "ask", "the round trip, up to Flow.ask_interval", "Asks again for credits."),
    ("flow", "due", "the round trip", "Asks again how far receivers are (Pacing)."),
    ("flow", "held", "Flow.max_block_times", "Sends messages without credits: they waited enough."),
    ("fragment", "incomplete", "Fragment.incomplete_timeout", "Drops a message that stays torn."),
    ("fragment", "tidy", "1", "Frees memory that no message uses any more."),
    (
        "large",
        "give up",
        "LargeMessages.receive_timeout",
        "Gives up a message that does not go on.",
    ),
    ("large", "remind", "LargeMessages.ack_timeout", "Asks for the ack of a large message again."),
    ("membership", "decide", "Discovery.timeout", "Creates a group where none was found."),
    ("membership", "gather", "Membership.gather", "Makes one view of the requests since."),
    ("membership", "join", _RETRY, "Asks the coordinator again to be admitted."),
    ("membership", "leave", "Membership.gather or retry_max", "Takes the next step of leaving."),
    ("membership", "retry", _RETRY, "Repeats to silent members what they have not answered."),
    ("membership", "stuck", "Membership.change_timeout", "Goes on without the view that waits."),
    ("multicast", "ack", "0.002, longer in large groups", "Acks what was taken since."),
    ("multicast", "pace", "congestion control", "Sends the next of what waits for the pace."),
    ("multicast", "repair", "request_delay, then the round trip", "Requests what is missing."),
    ("multicast", "tail", "a tenth of xmit_interval", "Announces the last message in a pause."),
    ("multicast", "tick", "xmit_interval", "Acks, announces and requests what is overdue."),
    ("order", "order", "the same step", "Sends the order of messages that arrived in the step."),
    ("path", "check", "1", "Looks whether datagrams of this size still arrive."),
    ("path", "raise", "PathMtu.raise_after", "Tries larger datagrams."),
    ("path", "round", "the round trip", "Judges the answers to a size that was tried."),
    ("quorum", "say", "Majority.interval", "Repeats what this member knows about the majority."),
    ("services", "#", "the timeout of the call", "Ends a call that waits for replies, by its id."),
    ("services", "look", "0.02", "Looks whether all has come that a state contains."),
    ("services", "begin", "5", "Asks another member for the state."),
    ("slow", "look", "an eighth of SlowMembers.bound", "Looks which member holds senders back."),
    ("stability", "vote", "Stability.interval", "Votes on what is stable."),
    ("unicast", "ack", "0.002", "Acks what was taken since."),
    ("unicast", "pace", "congestion control", "Sends the next of what waits for the pace."),
    ("unicast", "repair", "request_delay, then the round trip", "Requests what is missing."),
    ("unicast", "tail", "a tenth of xmit_interval", "Announces the last message in a pause."),
    ("unicast", "tick", "Unicast.xmit_interval", "Acks, announces and requests what is overdue."),
):
    declare_timer(_role, _name, _length, _about)
