"""Why no member was found, as far as this member can tell: one sentence with what to look at."""

from __future__ import annotations

from collections.abc import Mapping

from ringcast.control.discovery import DiscoveryPart, is_endpoint
from ringcast.runtime.member.member import Member
from ringcast.runtime.net.endpoints import is_local, is_remote, split_endpoint

_UNREACHABLE = "it cannot be reached from here: check the address, the route and the firewall"
_SIGNS = (
    (
        ("dropped_wrong_version",),
        "a process there speaks another version of the protocol: update one of the two",
    ),
    (
        ("dropped_wrong_key",),
        "sealed datagrams arrive that this key does not open: check that all have one key file",
    ),
    (
        ("dropped_sealed",),
        "a closed group is there, and this member has no key: give key_file, or --key-file",
    ),
    (
        ("dropped_unsealed",),
        "an open group is there, and this member has a key: give the others the key as well",
    ),
    (
        ("dropped_wrong_group",),
        "a member of another group is there: check the name of the group, and the port",
    ),
    (("dropped_no_hello",), "what listens there is not a member of a group: check the port"),
    (
        ("ended_econnrefused", "receive_econnrefused"),
        "no process listens there: start a member, or check the port",
    ),
    (
        (
            *("ended_ehostunreach", "ended_enetunreach", "ended_etimedout"),
            *("dropped_send_enetunreach", "dropped_send_ehostunreach", "dropped_send_eperm"),
        ),
        _UNREACHABLE,
    ),
    (
        ("ended_silent",),
        "what is there says nothing: it is stopped, a firewall is between, or it is not a member",
    ),
    (
        ("closed_by_peer",),
        "what is there ends connections without a word: it is in a closed group (give key_file, or"
        " --key-file), has another key, speaks TLS, or is not a member",
    ),
    (("dropped_unreachable",), _UNREACHABLE),
)
"""Counters of drops, the most telling first, and what they mean."""


def tried_in_vain(member: Member) -> str:
    """What was tried and from where, and what to look at."""
    part = next(part for part in member.stack.parts if isinstance(part, DiscoveryPart))
    counters = {**member.stack.counters, **member.transport.stats()}
    hint = _unreachable_here(member.peer.endpoint, part) or _sign(counters)
    return f"tried {part.tried} from {member.peer.endpoint}; {hint}"


def _unreachable_here(endpoint: str, part: DiscoveryPart) -> str:
    """Whether this member is where those that it asks can never answer it."""
    host = split_endpoint(endpoint)[0] if is_endpoint(endpoint) else ""
    places = [split_endpoint(place)[0] for place in part.places if is_endpoint(place)]
    if is_local(host) and any(map(is_remote, places)):
        return f"{host} is reached from this machine only: bind to an address that others reach"
    return ""


def _sign(counters: Mapping[str, int]) -> str:
    for names, meaning in _SIGNS:
        if any(counters.get(name) for name in names):
            return meaning
    return "check that a member runs there, or give more time"
