"""Compression: blocks, bounds, what cannot be unpacked."""

import json
import tracemalloc
import zlib
from random import Random
from typing import Any

import pytest
from backports import zstd

from ringcast import presets
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Batch, Payload
from ringcast.core.model.events import Skipped
from ringcast.core.stack.env import Env
from ringcast.core.stack.fingerprint import difference, fingerprint
from ringcast.core.stack.part import Layer
from ringcast.core.stack.ports import Control, Ports
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Data
from ringcast.errors import ConfigError
from ringcast.layers.compress import algorithms
from ringcast.layers.compress.layer import (
    COMPRESSED,
    FIRST,
    NEXT,
    UNTRIED_MIN,
    Compress,
    CompressLayer,
)
from ringcast.sim import World
from ringcast.spec import StackSpec

A, B = Address(1), Address(2)
RECORDS: list[Payload] = [
    json.dumps({"id": n, "name": f"user-{n}", "state": "active", "score": n * 7}).encode()
    for n in range(50)
]


class End(Layer):
    """Keeps what it is given; the largest message that passes at once is 1,000 bytes."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.batches: list[Batch] = []
        self.events: list[object] = []

    max_unit = 1_000
    max_message = 100_000

    def down(self, batch: Batch) -> None:
        self.batches.append(batch)

    def up(self, batch: Batch) -> None:
        self.batches.append(batch)

    def skipped(self, event: Skipped) -> None:
        self.events.append(event)


class Stack:
    """What parts ask of a stack."""

    view = None
    drained = True
    install = suspect = finish = None

    def emit(self, event: object) -> None:
        """Nobody listens."""


def make(spec: Compress) -> tuple[CompressLayer, End, End]:
    env = Env(Peer(B, "b", ""), Random(1))
    layer, above, below = spec.build(env), End(env), End(env)
    layer.above, layer.below = above, below
    ports = Ports()
    ports.offer(Control, Stack())
    layer.connect(ports)
    return layer, above, below


def run(payloads: list[Payload], first: int = 1, flags: int = 0) -> Batch:
    return Batch(A, payloads, sum(map(len, payloads)), first=first, flags=flags)


def sent(spec: Compress, payloads: list[Payload]) -> Batch:
    layer, _, below = make(spec)
    layer.down(run(payloads))
    (batch,) = below.batches
    return batch


def test_a_run_of_messages_alike_becomes_much_smaller_and_stays_a_run() -> None:
    batch = sent(Compress(), RECORDS)
    assert len(batch) == len(RECORDS)
    assert batch.flags & COMPRESSED
    assert batch.nbytes * 2.5 < sum(map(len, RECORDS))


@pytest.mark.parametrize("algorithm", ["zlib", "zstd"])
@pytest.mark.parametrize("cuts", [[50], [1] * 50, [7, 13, 30]])
def test_a_block_is_unpacked_however_it_is_cut(cuts: list[int], algorithm: str) -> None:
    batch = sent(Compress(algorithm=algorithm), RECORDS)
    layer, above, _ = make(Compress(algorithm=algorithm))
    place = 0
    for count in cuts:
        layer.up(run(list(batch.payloads[place : place + count]), place + 1, batch.flags))
        place += count
    assert [p for got in above.batches for p in got.payloads] == RECORDS
    assert [got.first for got in above.batches] == [sum(cuts[:n]) + 1 for n in range(len(cuts))]
    assert not any(got.flags for got in above.batches)


@pytest.mark.parametrize(
    "payloads", [[b"x" * 100], [Random(2).randbytes(5_000)], [b"y" * 101_000, b""]]
)
def test_what_is_small_random_or_too_large_goes_as_it_is(payloads: list[Payload]) -> None:
    batch = sent(Compress(max_message=100_000), payloads)
    assert batch.payloads is payloads
    assert not batch.flags


def test_messages_that_a_layer_below_may_hold_are_blocks_of_their_own() -> None:
    noise = Random(3).randbytes(3_000)
    batch = sent(Compress(), [b"z" * 20_000, noise, b"z" * 20_000])
    assert [bytes(p)[:1] for p in batch.payloads] == [FIRST] * 3


def bombs() -> dict[str, bytes]:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    wide: dict[int, int] = {
        zstd.CompressionParameter.compression_level: 19,
        zstd.CompressionParameter.window_log: 27,
    }
    far = zstd.ZstdCompressor(options=wide)
    near = zstd.ZstdCompressor()
    return {
        "zlib": deflate.compress(bytes(50_000_000)) + deflate.flush(),
        "zstd": near.compress(bytes(50_000_000), near.FLUSH_BLOCK),
        "zstd, 128 MB window": far.compress(b"short", far.FLUSH_BLOCK),
    }


@pytest.mark.parametrize("kind", ["zlib", "zstd", "zstd, 128 MB window"])
def test_a_bomb_costs_no_more_than_the_bound_and_is_skipped(kind: str) -> None:
    layer, above, _ = make(Compress(algorithm=kind[:4], max_message=10_000))
    bomb = FIRST + bombs()[kind]
    layer.up(run([bomb, NEXT + b"left over"], 5, COMPRESSED))
    assert [(e.first, e.last) for e in above.events if isinstance(e, Skipped)] == [(5, 5), (6, 6)]
    assert layer.env.counters["dropped_unpackable"] == 2
    assert not above.batches


@pytest.mark.parametrize("algorithm", ["zlib", "zstd"])
@pytest.mark.parametrize("payload", [b"", FIRST + b"\xff\xff" * 9, NEXT + b"no block"])
def test_what_cannot_be_unpacked_is_skipped_and_the_rest_delivered(
    payload: bytes, algorithm: str
) -> None:
    good = sent(Compress(algorithm=algorithm), RECORDS)
    layer, above, _ = make(Compress(algorithm=algorithm))
    layer.up(run([payload, *good.payloads], 1, COMPRESSED))
    assert [got.first for got in above.batches] == [2]
    assert above.batches[0].payloads == RECORDS
    assert len(above.events) == 1


def test_after_skipped_messages_a_block_cannot_go_on() -> None:
    good = sent(Compress(), RECORDS)
    layer, above, _ = make(Compress())
    layer.up(run(list(good.payloads[:10]), 1, COMPRESSED))
    layer.skipped(Skipped(A, 11, 20, "late"))
    layer.up(run(list(good.payloads[20:]), 21, COMPRESSED))
    assert [got.first for got in above.batches] == [1]
    assert len(above.events) == 31


@pytest.mark.parametrize("settings", [{"threshold": 0}, {"level": 10}, {"max_message": 0}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Compress"):
        Compress(**settings)


def test_zstd_is_chosen_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Compress() == Compress(algorithm="zstd")
    monkeypatch.setattr(algorithms, "_zstd", lambda: None)
    assert Compress() == Compress(algorithm="zlib")
    with pytest.raises(ConfigError, match=r"pip install 'ringcast\[zstd\]'"):
        Compress(algorithm="zstd")
    with pytest.raises(ConfigError, match="'lz4': give 'auto', 'zstd' or 'zlib'"):
        Compress(algorithm="lz4")


def test_members_with_and_without_zstd_do_not_form_one_group() -> None:
    line = [fingerprint([Compress(algorithm=name)]) for name in ("zstd", "zlib")]
    assert "the group has Compress(algorithm=zstd)" in difference(*line)


@pytest.mark.parametrize("seed", range(3))
def test_a_group_delivers_everything_under_loss_and_view_changes(seed: int) -> None:
    spec = presets.lan().insert(Compress()).replace("Fragment", frag_size=300)
    world = World(seed=seed, spec=spec, loss=0.1)
    a, b = world.join("a", "b")
    large = b" ".join(map(bytes, RECORDS)) * 20
    for round_ in range(6):
        a.send_many([*RECORDS, large, *RECORDS])
        b.send_many(RECORDS)
        b.send(large, to=a.me)
        world.run(seconds=0.05)
        if round_ == 2:
            world.join("c")
    world.settle()
    assert world.check() == []
    assert [m.payload for m in b.delivered if m.sender == a.me] == [*RECORDS, large, *RECORDS] * 6
    assert a.stack.counters["compress_saved_bytes"] > 10_000


def test_after_a_sample_that_does_not_shrink_the_next_runs_are_not_tried() -> None:
    dice = Random(4)
    layer, _, below = make(Compress())

    def tried(payloads: list[Payload]) -> bool:
        below.batches.clear()
        layer.down(run(payloads))
        return bool(below.batches[0].flags & COMPRESSED)

    assert tried(RECORDS)
    assert not tried([dice.randbytes(1_000) for _ in range(8)])
    passed = 0
    while not tried(RECORDS):
        passed += sum(map(len, RECORDS))
    assert UNTRIED_MIN <= passed < 2 * UNTRIED_MIN
    assert tried(RECORDS), "what shrinks is tried again at once"


def test_runs_of_random_bytes_are_tried_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(5)
    noise: list[Payload] = [dice.randbytes(1_000) for _ in range(100)]
    layer, _, below = make(Compress())
    samples: list[int] = []

    def shrinks(self: CompressLayer, payloads: list[Payload]) -> bool:
        samples.append(len(payloads))
        return real(self, payloads)

    real = CompressLayer._shrinks
    monkeypatch.setattr(CompressLayer, "_shrinks", shrinks)
    for _ in range(1_000):
        layer.down(run(noise))
    assert sum(batch.nbytes for batch in below.batches) == 100_000_000
    assert len(samples) < 40


@pytest.mark.parametrize("spec", [presets.lan(), presets.lan().with_total_order()])
def test_what_waits_for_a_busy_application_waits_packed(spec: StackSpec) -> None:
    world = World(seed=1, spec=spec.insert(Compress()))
    a, b = world.join("a", "b")
    b.busy()
    messages = [bytes(100_000)] * 500
    for first in range(0, 500, 50):
        a.send(messages[first : first + 50])
        world.run(0.05)
    assert b.stack.unread_bytes < 100_000
    world.join("c")  # A view does not unpack what waits before it.
    assert b.stack.unread_bytes < 100_000
    taken = b.stack.take(10_000, world.now)
    assert 16_000_000 <= sum(e.nbytes for e in taken if isinstance(e, Batch)) <= 16_100_000
    b.idle()
    world.settle()
    assert b.stack.unread_bytes == 0


def test_bombs_cost_a_busy_application_what_they_are_packed() -> None:
    world = World(seed=1, spec=presets.lan().insert(Compress(algorithm="zlib")))
    a, b = world.join("a", "b")
    assert a.view is not None
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = FIRST + deflate.compress(bytes(10_000_000)) + deflate.flush(zlib.Z_SYNC_FLUSH)[:-4]
    b.busy()
    tracemalloc.start()
    for seqno in range(1, 200):  # What a member could send, or any process of an open group.
        data = Data(a.view.id, 0, a.me, seqno, 0, 0, COMPRESSED, [bomb], len(bomb))
        world.inject(b"".join(encode(group_id("sim"), a.me, [data])), b)
        world.run(0.001)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    before = b.stack.unread_bytes
    assert before >= 199 * len(bomb)
    taken = [event for event in b.stack.take(10_000, world.now) if isinstance(event, Batch)]
    assert sum(batch.nbytes for batch in taken) == 20_000_000, "two of them, and no more at a time"


def test_one_that_cannot_be_unpacked_is_skipped_in_its_place_when_it_is_taken() -> None:
    world = World(seed=1, spec=presets.lan().insert(Compress(algorithm="zlib")))
    a, b = world.join("a", "b")
    assert a.view is not None
    good = list(sent(Compress(algorithm="zlib"), RECORDS).payloads)
    b.busy()
    payloads = [*good[:2], FIRST + b"\xff" * 9, *good[3:5]]
    nbytes = sum(map(len, payloads))
    data = Data(a.view.id, 0, a.me, 1, 0, 0, COMPRESSED, payloads, nbytes)
    world.inject(b"".join(encode(group_id("sim"), a.me, [data])), b)
    world.run(0.1)
    b.idle()
    world.run(0.1)
    assert [m.payload for m in b.delivered if m.sender == a.me] == RECORDS[:2]
    assert [(event.first, event.last) for event in b.skipped] == [(3, 3), (4, 4), (5, 5)]
    assert b.stack.counters["dropped_unpackable"] == 3
