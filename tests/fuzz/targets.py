"""What `make fuzz` feeds: each target takes any bytes, and raises for what must not happen.

Bytes that random changes would hardly ever get past a checksum with are given the right one first.
"""

from __future__ import annotations

import io
import socket
import struct
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from ringcast import presets
from ringcast.closed.handshake import Handshake
from ringcast.closed.keys import Key, parse_keys
from ringcast.closed.seal import GroupSeal, group_tag
from ringcast.core.model.address import Address
from ringcast.core.model.batch import CALL, SERVICE, Batch
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import decode, encode, encode_frame, group_id
from ringcast.core.wire.frames import RUNS, Frame, FramePiece, Leave
from ringcast.core.wire.layout import (
    CHECKSUM,
    EVERYBODY,
    FLAG_SEALED,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    VERSION,
)
from ringcast.core.wire.outbox import Datagram
from ringcast.core.wire.receiver import Receiver
from ringcast.core.wire.segments import Received, Segments
from ringcast.errors import ConfigError, Malformed, RemoteError, Replayed
from ringcast.journal.format.errors import JournalError
from ringcast.journal.format.log_records import FRAME, read_log
from ringcast.journal.format.manifest import read_removed, read_segment
from ringcast.runtime.discovery.directory_discovery import notice_in
from ringcast.runtime.live.reports import read_report
from ringcast.runtime.net.connection import Connection, ReadBuffer
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.net.stream.broken import Broken
from ringcast.services.messages import read
from ringcast.sim import World
from ringcast.spec import StackSpec
from ringcast.trace.table import read_file

GROUP, GROUP_SEALED = group_id("sim"), group_id("closed")
STRANGER = Address(0xBAD)
ME, MEMBER = Address(7), Address(8)
KEY = Key(bytes(range(32)))
HEADER_OF_SEALED = MAGIC + bytes((VERSION, FLAG_SEALED)) + group_tag(KEY, "closed")
"""What any process can read in the datagrams of a closed group."""
VIEW = ViewId(3, Address(9))
WORLD_INPUTS = 500
"""Inputs that one simulated group gets before a new one takes its place."""
STEP = struct.Struct("!H")


def mended(data: bytes, source: Address, group: int = GROUP) -> bytes:
    """A datagram with the right magic, version, group, source and checksum."""
    rest = data[HEADER_SIZE:]
    size = int.from_bytes(data[28:32].ljust(4, b"\0"), "big") % (len(rest) + 1)
    head = HEADER.pack(MAGIC, VERSION, 0, group, source, EVERYBODY, size)
    return head + CHECKSUM.pack(crc32(rest[:size], crc32(head))) + rest


def parts(data: bytes) -> Iterator[bytes]:
    """The input as several: each with its length before it."""
    while len(data) > STEP.size:
        (size,) = STEP.unpack_from(data)
        yield data[STEP.size : STEP.size + size]
        data = data[STEP.size + size :]


def joined(pieces: Sequence[bytes]) -> bytes:
    """An input of several."""
    return b"".join(STEP.pack(len(piece)) + piece for piece in pieces)


def _text(frames: Sequence[Frame]) -> list[bytes]:
    """Frames in one form, however they were read: each message of a run by itself."""
    texts = []
    for frame in frames:
        if isinstance(frame, RUNS):
            place = [name for name in frame.__slots__ if name not in _OF_A_RUN]
            where = [getattr(frame, name) for name in place]
            for seqno, payload in enumerate(frame.payloads, frame.first):
                texts.append(f"{frame.kind} {where} {seqno}".encode() + bytes(payload))
        else:
            texts.append(encode_frame(frame))
    return texts


_OF_A_RUN = ("payloads", "nbytes", "size", "first", "low")


def _received(datagrams: Sequence[Received]) -> list[Frame]:
    """The frames that a member reads."""
    taken: list[Frame] = []
    receiver = Receiver(GROUP, ME, lambda frames, source: taken.extend(frames), Counter())
    receiver.receive(datagrams, VIEW)
    return taken


def codec(data: bytes) -> None:
    """A datagram is read or refused, and what was read can be written."""
    for datagram in (data, mended(data, STRANGER)):
        with suppress(RemoteError):
            _text(decode(datagram, GROUP, ME)[1])


def fast_path(data: bytes) -> None:
    """The fast path takes what the codec takes, and nothing else."""
    datagram = mended(data, STRANGER)
    taken = _received([datagram])
    try:
        expected = decode(datagram, GROUP, ME)[1]
    except RemoteError:
        assert not taken, "the fast path takes what the codec refuses"
        return
    if not any(isinstance(frame, FramePiece) for frame in expected):
        assert _text(taken) == _text(expected), "the fast path reads something else"


def segments(data: bytes) -> None:
    """Datagrams in one buffer are those that are in it."""
    pieces = [mended(piece, STRANGER) for piece in parts(data)]
    size = max(map(len, pieces), default=0)
    buffer = b"".join(pieces)
    if 0 < size < len(buffer):
        found: list[list[bytes]] = []
        for received in ([Segments(buffer, size)], list(Segments(buffer, size))):
            found.append(_text(_received(received)))
        assert found[0] == found[1], "segments are read as something else"


class _Groups:
    """A group of two whose first member gets datagrams; another group after some inputs."""

    def __init__(self) -> None:
        self.inputs = 0
        self.world: World | None = None

    def renewed(self) -> World:
        self.inputs += 1
        if self.world is None or self.inputs % WORLD_INPUTS == 0:
            name = ("lan", "stable", "bulk")[self.inputs // WORLD_INPUTS % 3]
            self.world = World(1, presets.PRESETS[name](), keep=False)
            first, _ = self.world.join("a", "b")
            first.service.provide(lambda: [b"state"])
            first.send([b"x" * 100] * 20)
            self.world.settle()
        return self.world


_ours = GroupSeal((KEY,), "closed", ME, has_aes=True)
_theirs = GroupSeal((KEY,), "closed", MEMBER, has_aes=True)
_stranger_groups, _member_groups, _service_groups = _Groups(), _Groups(), _Groups()


def _stack(data: bytes, groups: _Groups, is_member: bool) -> None:
    world = groups.renewed()
    a, b = world.members["a"], world.members["b"]
    view = a.view
    for piece in parts(data):
        world.inject(mended(piece, b.me if is_member else STRANGER), a)
        world.run(0.002)
    if a.view != view or a.stack.closed is not None:
        assert is_member, "a stranger changed the view"
        groups.world = None  # A member may make others go, within its own group.


def stranger(data: bytes) -> None:
    """A process outside the view changes nothing."""
    _stack(data, _stranger_groups, is_member=False)


def member(data: bytes) -> None:
    """A hostile member ends no other."""
    _stack(data, _member_groups, is_member=True)


def services(data: bytes) -> None:
    """Calls and state messages of a hostile member end no other."""
    world = _service_groups.renewed()
    a, b = world.members["a"], world.members["b"]
    correlator = a.service.correlator
    payloads = list(parts(data))
    for payload in payloads:
        with suppress(Malformed):
            read(payload)
    if payloads:
        size = sum(map(len, payloads))
        correlator.service_messages(Batch(b.me, payloads, size, dest=a.me, first=1, flags=SERVICE))
        a.service.give(correlator.calls(Batch(b.me, payloads, size, first=1, flags=CALL)))
        correlator.outgoing.clear()


def tcp_stream(data: bytes) -> None:
    """A stream is cut into datagrams, or its connection is over."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        connection, buffer = Connection(ours, None, 0.0), ReadBuffer()
        with suppress(Broken):
            for place, piece in enumerate(parts(data)):
                if piece and theirs.send(piece) and buffer.read(connection):
                    if not place:
                        connection.read_hello(buffer, GROUP)
                    else:
                        buffer.cut()


def sealed(data: bytes) -> None:
    """Bytes behind a true head are refused, and what a keyholder has sealed is never altered."""
    head = HEADER_OF_SEALED + STRANGER.to_bytes(8, "big")
    sent = b"".join(encode(GROUP_SEALED, MEMBER, [Leave(VIEW)]))
    (good,) = _theirs.seal([Datagram(None, [sent], len(sent))])
    whole = b"".join(good.buffers)
    for wrong in (data, HEADER_OF_SEALED + data, head + data, _altered(whole, data)):
        with suppress(RemoteError):
            opened = bytes(_ours.open(wrong))
            assert opened == sent, "an altered datagram was opened"
    with suppress(Replayed):  # It may have been opened, unaltered, just now.
        assert bytes(_ours.open(whole)) == sent


def _altered(whole: bytes, data: bytes) -> bytes:
    """A datagram with the bits of an input flipped, from a place on that the input names."""
    at = data[0] % len(whole) if data else 0
    flips = data[1 : 1 + len(whole) - at]
    middle = bytes(a ^ b for a, b in zip(whole[at:], flips, strict=False))
    return whole[:at] + middle + whole[at + len(middle) :]


def hello(data: bytes) -> None:
    """A hello of a closed group that this side did not ask for convinces neither side."""
    caller = Handshake(_theirs, MEMBER, True, {})
    first = _altered(caller.first, data)
    for said in (data, first):
        for side in (Handshake(_ours, ME, False, {}), Handshake(_ours, ME, True, {})):
            with suppress(RemoteError):
                side.feed(said[: side.size].ljust(side.size, b"\0"))
                assert said == caller.first, "an altered hello is answered"
            assert side.address is None


def key_file(data: bytes) -> None:
    """The content of a key file is read, or refused without showing it."""
    try:
        assert parse_keys(data, "group.key")
    except ConfigError as error:
        sentence = str(error)
        for word in data.split():
            assert len(word) < 16 or word.decode(errors="replace") not in sentence


def journal(data: bytes) -> None:
    """A log and a manifest are read, or refused in a sentence."""
    whole = b"".join(FRAME.pack(len(body), crc32(body)) + body for body in parts(data))
    for content in (data, whole):
        with suppress(JournalError):
            log = read_log(io.BytesIO(content), len(content))
            if log is not None:
                for record in log.records:
                    repr(record)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        for reader in (read_segment, read_removed):
            with suppress(JournalError):
                reader(Path(file.name))


def trace(data: bytes) -> None:
    """A trace is read, or refused in a sentence."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(data)
        file.flush()
        with suppress(ConfigError):
            for row in read_file(Path(file.name)):
                repr(row)


def spec(data: bytes) -> None:
    """A stack in TOML is read, or refused in a sentence."""
    with suppress(ConfigError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Former names of settings.
        made = StackSpec.from_toml(data.decode(errors="replace"))
        assert StackSpec.from_toml(made.to_toml()) == made


def report(data: bytes) -> None:
    """A report for the live view is read, or refused."""
    for content in (data, zlib.compress(data, 0)):
        with suppress(ValueError):
            read_report(content)


def directory(data: bytes) -> None:
    """What others write into a shared directory is an endpoint, or nothing."""
    group, name, endpoint = notice_in(data)
    if endpoint:
        split_endpoint(endpoint)
        f"{group} {name}".encode(errors="replace")
        endpoint.encode()


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        codec,
        fast_path,
        segments,
        stranger,
        member,
        services,
        tcp_stream,
        sealed,
        hello,
        key_file,
        journal,
        trace,
        spec,
        report,
        directory,
    )
}
