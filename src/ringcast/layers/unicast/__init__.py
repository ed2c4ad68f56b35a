"""Reliable unicast: messages for one member, in order, exactly once, across views."""

from ringcast.layers.unicast.layer import Unicast, UnicastLayer

__all__ = ["Unicast", "UnicastLayer"]
