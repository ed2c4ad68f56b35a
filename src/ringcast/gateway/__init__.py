"""The gateway: one member of a group that sends for all processes of this user on this machine.

A process that wants to send a little, or not for long, need not join: joining changes the view, and
every member gets every message. The first one that asks starts the gateway, as a process of its
own; it leaves the group when no client has connected for a while.
"""

from ringcast.gateway.client import Client, connect
from ringcast.gateway.settings import Settings

__all__ = ["Client", "Settings", "connect"]
