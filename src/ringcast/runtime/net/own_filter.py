"""A filter in the kernel for what arrives at a UDP socket (classic BPF, socket(7)).

It drops a member's own multicast datagrams, which come back to it since members on one machine need
the loop of multicast. Once the member has a view it also drops what is not of its group: garbage
then takes no room in the socket's buffer. Before that, other groups and versions pass, so that the
stack can count them and `ringcast doctor` can name them. The filter reads our own header, so it is
the same for IPv4 and IPv6; where the kernel has no such filter, the stack drops these datagrams.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.wire.layout import HEADER_SIZE, MAGIC

_SO_ATTACH_FILTER = 26
_UDP_HEADER = 8
_MAGIC_AT = _UDP_HEADER
_GROUP_AT = _UDP_HEADER + 4
_SOURCE_AT = _UDP_HEADER + 12
"""Where our header has the source's 64 bits: behind magic, version, flags and group."""

_LOAD_WORD = 0x20
_LOAD_HALF = 0x28
_LOAD_LENGTH = 0x80
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_RETURN = 0x06
_ALL = 0xFFFFFFFF

Step = tuple[int, int, int, int]
"""Code, steps to jump over if true, steps to jump over if false, value."""
_PASS: Step = (_RETURN, 0, 0, _ALL)
_DROP: Step = (_RETURN, 0, 0, 0)


def drop_own(sock: socket.socket, me: Address) -> bool:
    """Drop what says it is from `me`; whether the kernel could be asked to."""
    # Too short for a header: let the stack count it.
    too_short: list[Step] = [(_LOAD_LENGTH, 0, 0, 0), (_JUMP_AT_LEAST, 1, 0, _SOURCE_AT + 8), _PASS]
    return _attach(sock, [*too_short, *_unless_from(me), _PASS])


def drop_foreign(sock: socket.socket, me: Address, groups: Sequence[int]) -> bool:
    """Drop what is not of these groups, and what says it is from `me`."""
    steps: list[Step] = [
        (_LOAD_LENGTH, 0, 0, 0),
        (_JUMP_AT_LEAST, 1, 0, _UDP_HEADER + HEADER_SIZE),
        _DROP,
        (_LOAD_HALF, 0, 0, _MAGIC_AT),
        (_JUMP_EQUAL, 1, 0, int.from_bytes(MAGIC, "big")),
        _DROP,
    ]
    own: list[Step] = [*_unless_from(me), _PASS]
    for group in groups:
        high, low = group >> 32, group & 0xFFFFFFFF
        steps += [
            (_LOAD_WORD, 0, 0, _GROUP_AT),
            (_JUMP_EQUAL, 0, 2 + len(own), high),
            (_LOAD_WORD, 0, 0, _GROUP_AT + 4),
            (_JUMP_EQUAL, 0, len(own), low),
            *own,
        ]
    return _attach(sock, [*steps, _DROP])


def _unless_from(me: Address) -> list[Step]:
    """Drop what is from `me`, and go on with everything else."""
    high, low = me >> 32, me & 0xFFFFFFFF
    return [
        (_LOAD_WORD, 0, 0, _SOURCE_AT),
        (_JUMP_EQUAL, 0, 3, high),
        (_LOAD_WORD, 0, 0, _SOURCE_AT + 4),
        (_JUMP_EQUAL, 0, 1, low),
        _DROP,
    ]


def _attach(sock: socket.socket, program: Sequence[Step]) -> bool:
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    try:
        fprog = struct.pack("@HP", len(program), ctypes.addressof(buffer))
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
    except OSError:
        return False
    return True
