"""Writes the corpus anew: `python -m tests.fuzz.corpus`. A few inputs of each target that mean
something; the fuzzer finds the others."""

from __future__ import annotations

import json
import tempfile
from hashlib import blake2b
from pathlib import Path
from random import Random

import ringcast
from ringcast import presets
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import encode
from ringcast.core.wire.fastpath import encode_run
from ringcast.core.wire.frames import Data
from ringcast.core.wire.layout import FRAME_SIZE, HEADER_SIZE
from ringcast.journal.format.coverage import NOTHING
from ringcast.journal.format.log_records import Header, header_record, run_record, skip_record
from ringcast.runtime.member.stats import member_report
from ringcast.runtime.net.connection import LENGTH, encode_hello
from ringcast.services.messages import (
    Answer,
    Call,
    StateBegin,
    StateCancel,
    StateEnd,
    StateMark,
    StatePiece,
    StateRefusal,
    StateRequest,
    write,
)
from ringcast.sim import World
from ringcast.sim.swarm import hostile
from ringcast.trace.schema import Row
from ringcast.trace.table import write_rows
from ringcast.transports import Memory
from tests.fuzz.targets import GROUP, STRANGER, VIEW, joined

CORPUS = Path(__file__).with_name("corpus")
FRAME_HEAD = 8
"""Bytes before the body of a record of a log."""


def inputs() -> dict[str, list[bytes]]:
    """The inputs of each target."""
    world = World(1, presets.lan())
    a, b = world.join("a", "b")
    assert a.view is not None
    rng = Random(1)
    outside = hostile.stranger(rng, [a.me, b.me])
    inside = hostile.member(b.me, a.view)
    strangers = [hostile.draw_datagram(rng, outside) for _ in range(60)]
    members = [hostile.draw_datagram(rng, inside) for _ in range(60)]
    runs = [_run(1, 5, 3), _run(6, 5, 3), _run(1, 2, 200), _run(9, 1, 0)]
    state = [StateBegin(1, NO_VIEW, (StateMark(a.me, 3),)), StatePiece(1), StateEnd(1)]
    asked = [Call(1), Answer(1, 0), StateRequest(1), StateCancel(1), StateRefusal(1, 2)]
    letters = [write(letter, b"body") for letter in (*asked, *state)]
    datagram = strangers[0]
    stream = [
        encode_hello(GROUP, STRANGER),
        LENGTH.pack(len(datagram)) + datagram[:9],
        datagram[9:],
    ]
    return {
        "codec": [*strangers[:20], *members[:20], *runs],
        "fast_path": [*runs, *members[:10], _wrong_length(runs[0])],
        "segments": [joined(runs[:2]), joined([runs[0], runs[0], runs[2]]), joined(members[:3])],
        "stranger": [joined(strangers[at : at + 3]) for at in range(0, 60, 3)],
        "member": [joined(members[at : at + 3]) for at in range(0, 60, 3)],
        "services": [joined(letters), joined(letters[2:4]), joined(letters[5:])],
        "tcp_stream": [joined(stream), joined([stream[0][:5], stream[0][5:]])],
        "sealed": [b"\x21" + bytes(7) + b"\1", b"\0" + b"\1" * 80, b"\x14" + bytes(60)],
        "hello": [b"\0" + bytes(72), b"\x18\1", b"RCts" + bytes(68), b"RCtc\1" + bytes(67)],
        "key_file": [b"ab" * 32 + b"\r\n# a comment\n", b"ab" * 31 + b"\n", b"\xef\xbb\xbf"],
        "journal": [joined(_log()), *_wrong_logs(), *_manifests()],
        "trace": [_trace(), b""],
        "spec": [presets.PRESETS[name]().to_toml().encode() for name in ("lan", "stable", "bulk")],
        "report": [_report(), b"[]", b'{"pid": NaN}'],
        "directory": [_notice("host:7"), _notice("\x1b:7"), _notice("h]:7"), _notice(7)],
    }


def _report() -> bytes:
    with ringcast.sync.join("fuzz", presets.loopback().replace(Memory()), name="a") as group:
        told = json.loads(json.dumps(member_report(group._member, group._member.began + 1.0)))
    return json.dumps({**told, "pid": 7, "me": "1"}, sort_keys=True).encode()


def _notice(endpoint: object) -> bytes:
    return json.dumps({"group": "g", "name": "n", "endpoint": endpoint}).encode()


def _run(first: int, count: int, size: int) -> bytes:
    run = Data(VIEW, 0, STRANGER, first, 0, 0, 0, [bytes(size)] * count, size * count, size)
    if size:
        (datagram,) = encode_run(GROUP, STRANGER, run, count)
        return b"".join(datagram.buffers)
    return b"".join(encode(GROUP, STRANGER, [run]))


def _wrong_length(datagram: bytes) -> bytes:
    """A run whose frame says that it is longer than it is."""
    at = HEADER_SIZE + FRAME_SIZE - 1
    return datagram[:at] + bytes((datagram[at] + 1,)) + datagram[at + 1 :]


def _wrong_logs() -> list[bytes]:
    """Logs with right checksums and wrong records."""
    header, run, skip = _log()
    wrong = (b"?", run[:-1], skip[:-1], b"V{}", b"R")
    return [joined([b"H[]"]), *(joined([header, record]) for record in wrong)]


def _log() -> list[bytes]:
    header = Header(group="g", recorder=1, number=1, opened_at=5, durable=True, reached=NOTHING)
    records = [
        header_record(header),
        run_record(1, 1, 7, 1, [b"abc", b""], sent_at=5, delivered_at=6),
    ]
    records.append(skip_record(1, 1, 7, 3, 4))
    return [record[FRAME_HEAD:] for record in records]


def _manifests() -> list[bytes]:
    from ringcast.journal import JournalWriter

    with tempfile.TemporaryDirectory() as place:
        writer = JournalWriter(Path(place), "g", 1)
        writer.append(1, 1, 7, 1, [b"abc"], sent_at=5, delivered_at=6)
        writer.close()
        return [path.read_bytes() for path in Path(place).rglob("*.json")]


def _trace() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "t.parquet"
        write_rows(path, [Row(1, 2, 3, 4, "sent", 5, 1, 0, 10, 7, 8, 8)] * 3)
        return path.read_bytes()


def main() -> None:
    """Write a file per input, named by its content."""
    for target, found in inputs().items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for content in found:
            (folder / blake2b(content, digest_size=6).hexdigest()).write_bytes(content)


if __name__ == "__main__":
    main()
