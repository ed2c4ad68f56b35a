"""A filter in the kernel that keeps a member's own multicast datagrams from coming back to it.

Members on one machine need the loop of multicast, and with it everybody hears itself: a copy per
datagram that the stack would drop. The classic packet filter drops it before it is copied. It reads
the source in our own header, so it is the same for IPv4 and IPv6; where the kernel has no such
filter, the stack drops the datagrams as before.
"""

from __future__ import annotations

import ctypes
import socket
import struct

from ringcast.core.address import Address

_SO_ATTACH_FILTER = 26
_UDP_HEADER = 8
_SOURCE_AT = _UDP_HEADER + 12
"""Where our header has the source's 64 bits: behind magic, version, flags and group."""

_LOAD_WORD = 0x20
_LOAD_LENGTH = 0x80
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_RETURN = 0x06
_ALL = 0xFFFFFFFF


def drop_own(sock: socket.socket, me: Address) -> bool:
    """Drop what says it is from `me`; whether the kernel could be asked to."""
    high, low = me >> 32, me & 0xFFFFFFFF
    program = [
        (_LOAD_LENGTH, 0, 0, 0),
        (_JUMP_AT_LEAST, 0, 4, _SOURCE_AT + 8),  # Too short for a header: let the stack count it.
        (_LOAD_WORD, 0, 0, _SOURCE_AT),
        (_JUMP_EQUAL, 0, 2, high),
        (_LOAD_WORD, 0, 0, _SOURCE_AT + 4),
        (_JUMP_EQUAL, 1, 0, low),
        (_RETURN, 0, 0, _ALL),
        (_RETURN, 0, 0, 0),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    try:
        fprog = struct.pack("@HP", len(program), ctypes.addressof(buffer))
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
    except OSError:
        return False
    return True
