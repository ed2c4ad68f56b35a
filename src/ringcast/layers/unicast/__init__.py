"""Reliable unicast: messages for one member, in order, exactly once, across views."""

from ringcast.layers.unicast.layer import UnicastLayer
from ringcast.layers.unicast.settings import Unicast

__all__ = ["Unicast", "UnicastLayer"]
