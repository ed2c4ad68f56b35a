"""Protocols outside of Ringcast: one seals messages to the group and drops those that were changed
on their way, the other gives them one order."""

from my_protocol.seal import Seal, SealLayer
from my_protocol.turns import Turns, TurnsLayer

__all__ = ["Seal", "SealLayer", "Turns", "TurnsLayer"]
