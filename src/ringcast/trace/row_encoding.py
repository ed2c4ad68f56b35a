"""Packs a row about messages into bytes: what a member spends on its trace while it works.

A packed note costs a third of a tuple that is taken apart again, and turns into Arrow columns
without a loop over rows. Every field is eight bytes; -1 stands for null.
"""

from struct import Struct

from ringcast.trace.schema import DELIVERED, MESSAGE_KINDS, SENT, SKIPPED

NOTE_FIELDS = (
    *("view", "view_by", "sender", "kind", "seqno", "count", "pos", "nbytes"),
    *("digest", "sent_at", "at", "place"),
)
NOTE = Struct("=qQQqqqqqqqqq")

SENT_CODE, DELIVERED_CODE, SKIPPED_CODE = map(MESSAGE_KINDS.index, (SENT, DELIVERED, SKIPPED))

pack = NOTE.pack
