"""A filter in the kernel for what arrives at a UDP socket (classic BPF, socket(7)).

It drops a member's own multicast datagrams, which come back to it since members on one machine need
the loop of multicast. Once the member has a view it also drops what is not of its group: garbage
then takes no room in the socket's buffer. While strangers flood the group, it passes members, what
groups form and merge with, and a sample of everything else; while they flood it with what groups
form with as well, members and a sample. Before it has a view, other groups and
versions pass, so that the stack can count them and `ringcast doctor` can name them. The filter
reads our own header, so it is the same for IPv4 and IPv6; where the kernel has no such filter, the
stack drops these datagrams.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

from ringcast.core.model.address import Address
from ringcast.core.wire.frames import (
    Discover,
    Flushed,
    FramePiece,
    Install,
    Installed,
    Join,
    Leave,
    Merge,
    MergeReady,
    Prepare,
    Present,
    Refused,
)
from ringcast.core.wire.layout import HEADER_SIZE, MAGIC

STRANGERS_MAY_SEND = (
    Discover,
    Present,
    Join,
    Leave,
    Prepare,
    Flushed,
    Install,
    Installed,
    Merge,
    MergeReady,
    Refused,
    FramePiece,
)
"""What groups form and merge with. Their parts bound what each of these may cost."""

_SO_ATTACH_FILTER = 26
_UDP_HEADER = 8
_MAGIC_AT = _UDP_HEADER
_GROUP_AT = _UDP_HEADER + 4
_SOURCE_AT = _UDP_HEADER + 12
"""Where our header has the source's 64 bits: behind magic, version, flags and group."""

_KIND_AT = _UDP_HEADER + HEADER_SIZE
"""Where the code of the first frame stands."""
_RANDOM = 0xFFFFF000 + 56
"""Where the kernel has a random number (SKF_AD_OFF + SKF_AD_RANDOM)."""
SAMPLE, HEAVY_SAMPLE = 64, 32
"""In a flood, one of this many datagrams of strangers passes, and of those that groups form with
where these are the flood; powers of two. A joiner asks again until one of its frames passes."""
SEALED_SAMPLE = 8
"""In a flood of a closed group, one of this many datagrams of strangers passes: joiners are among
them, and what a sealed datagram holds is not readable here. A power of two."""
MEMBERS_MAX = 400
"""Members that a filter can know: a program has up to 4,096 steps, and five for each of them."""

_LOAD_BYTE = 0x30
_LOAD_WORD = 0x20
_LOAD_HALF = 0x28
_LOAD_LENGTH = 0x80
_AND = 0x54
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ALWAYS = 0x05
"""Over as many steps as its value says; all other jumps reach 255 at the most."""
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
    return _attach(sock, _group_filter(groups, [*_unless_from(me), _PASS]))


def sample_strangers(
    sock: socket.socket,
    me: Address,
    groups: Sequence[int],
    members: Sequence[Address],
    is_heavy: bool = False,
    is_sealed: bool = False,
) -> bool:
    """Drop that as well, and of what is neither from members nor of the kinds with which groups
    form and merge, all but one in SAMPLE; if `is_heavy`, all but one in HEAVY_SAMPLE of these
    kinds, too; in a closed group, if `is_sealed`, all but one in SEALED_SAMPLE of any kind. False
    where the kernel cannot do it, or for more than MEMBERS_MAX members."""
    if len(members) > MEMBERS_MAX // len(groups):
        return False
    steps = [step for member in members if member != me for step in _if_from(member)]
    steps.append((_LOAD_BYTE, 0, 0, _KIND_AT))
    for kind in () if is_heavy or is_sealed else STRANGERS_MAY_SEND:
        steps += [(_JUMP_EQUAL, 0, 1, kind.code), _PASS]
    mask = (SEALED_SAMPLE if is_sealed else HEAVY_SAMPLE if is_heavy else SAMPLE) - 1
    steps += [(_LOAD_WORD, 0, 0, _RANDOM), (_AND, 0, 0, mask), (_JUMP_EQUAL, 0, 1, 0), _PASS]
    return _attach(sock, _group_filter(groups, [*_unless_from(me), *steps, _DROP]))


def _group_filter(groups: Sequence[int], passed: Sequence[Step]) -> list[Step]:
    """Go on with these steps for what is of one of these groups; drop everything else."""
    steps: list[Step] = [
        (_LOAD_LENGTH, 0, 0, 0),
        (_JUMP_AT_LEAST, 1, 0, _UDP_HEADER + HEADER_SIZE),
        _DROP,
        (_LOAD_HALF, 0, 0, _MAGIC_AT),
        (_JUMP_EQUAL, 1, 0, int.from_bytes(MAGIC, "big")),
        _DROP,
    ]
    for group in groups:
        high, low = group >> 32, group & 0xFFFFFFFF
        steps += [
            (_LOAD_WORD, 0, 0, _GROUP_AT),
            (_JUMP_EQUAL, 0, 3, high),
            (_LOAD_WORD, 0, 0, _GROUP_AT + 4),
            (_JUMP_EQUAL, 0, 1, low),
            (_JUMP_ALWAYS, 0, 0, 1),
            (_JUMP_ALWAYS, 0, 0, len(passed)),
            *passed,
        ]
    return [*steps, _DROP]


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


def _if_from(member: Address) -> list[Step]:
    """Pass what is from a member, and go on with everything else."""
    *steps, _ = _unless_from(member)
    return [*steps, _PASS]


def _attach(sock: socket.socket, program: Sequence[Step]) -> bool:
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    try:
        fprog = struct.pack("@HP", len(program), ctypes.addressof(buffer))
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
    except OSError:
        return False
    return True
