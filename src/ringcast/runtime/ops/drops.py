"""Which drops are shown to people: those that a healthy group does not have."""

from __future__ import annotations

KERNEL_DROPS = "buffer_full"
"""The kernel counts datagrams of other groups as well."""
HARMLESS_DROPS = frozenset(["wrong_group", "bytes"])
"""Other groups at the same address are ordinary, and so are bytes that waited for a member which
has left."""


def is_alarm(reason: str, misses: bool) -> bool:
    """Whether drops for this reason need attention; misses: this member had to ask for messages."""
    return reason not in HARMLESS_DROPS and (misses or reason != KERNEL_DROPS)
