"""A protocol outside of Ringcast: it seals messages to the group, and drops those that were changed
on their way."""

from my_protocol.seal import Seal, SealLayer

__all__ = ["Seal", "SealLayer"]
