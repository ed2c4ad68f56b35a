"""Why a connection is over, as a counter, and as the log says it."""

from __future__ import annotations

from ringcast.errors import RingcastError


class Broken(RingcastError):
    """The connection is over; `reason` is the name of a counter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


BROKEN_TEXT = {
    "dropped_wrong_group": "it belongs to another group",
    "dropped_wrong_version": "it speaks another version of the protocol: update one of the two",
    "dropped_wrong_key": "it has another key, or none",
    "dropped_unsealed": "it has no key, and this group is closed",
    "dropped_sealed": "it is in a closed group, and this member has no key",
    "dropped_no_hello": "it is not a member of a group",
    "dropped_no_tls": "it does not speak TLS: give it a certificate of the same authority",
    "dropped_tls": "it speaks TLS: give this member a certificate too (Tcp.tls_certificate)",
    "dropped_wrong_certificate": "it has no certificate that is valid now, of this authority",
    "dropped_tls_error": "it speaks TLS in a way that this member does not understand",
    "refused_by_peer": "it refuses this member's certificate: use a valid one of its authority",
    "dropped_malformed": "it sends what no member sends",
    "dropped_unfinished": "it and other strangers begin large datagrams and do not end them",
    "dropped_wrong_source": "it sends datagrams in the name of others",
}
"""Reasons of Broken that the log explains."""
