"""Seal: a keyed checksum behind each message. Members with another key are not heard."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import blake2b

from ringcast import Batch, ConfigError, Skipped
from ringcast.protocols import Env, Layer, PartSnapshot, Payload, Spec, declare, protocol

SIZE = 16
"""Bytes of a seal."""

BROKEN = declare("seal_broken", "messages", "Messages whose seal did not match.")


@protocol(role="seal", over="large")
@dataclass(frozen=True, kw_only=True)
class Seal(Spec):
    """A keyed checksum for each message."""

    key: str = ""
    """The secret that all members share."""

    def __post_init__(self) -> None:
        if len(self.key.encode()) > 64:
            raise ConfigError("Seal.key is too long: give up to 64 bytes")

    def build(self, env: Env) -> SealLayer:
        """The layer with these settings."""
        return SealLayer(env, self)


@dataclass(frozen=True, kw_only=True)
class SealSnapshot(PartSnapshot):
    """What `stats()["seal"]` has."""

    broken: int
    """Messages whose seal did not match."""


class SealLayer(Layer):
    """Adds seals on the way down, checks and removes them on the way up."""

    def __init__(self, env: Env, spec: Seal) -> None:
        super().__init__(env)
        self._key = spec.key.encode()

    @property
    def max_message(self) -> int:
        return self.below.max_message - SIZE

    def down(self, batch: Batch) -> None:
        sealed = [bytes(payload) + self._seal(payload) for payload in batch.payloads]
        self.below.down(batch.with_payloads(sealed))

    def up(self, batch: Batch) -> None:
        good: list[Payload] = []
        for seqno, payload in enumerate(batch.payloads, batch.first):
            body, seal = bytes(payload[:-SIZE]), bytes(payload[-SIZE:])
            if hmac.compare_digest(seal, self._seal(body)):
                good.append(body)
                continue
            self._pass(batch, good, seqno)
            good = []
            self.env.counters[BROKEN] += 1
            is_direct = batch.dest is not None
            self.above.skipped(Skipped(batch.sender, seqno, seqno, "its seal is broken", is_direct))
        self._pass(batch, good, batch.last + 1)

    def _pass(self, batch: Batch, payloads: list[Payload], end: int) -> None:
        if payloads:
            self.above.up(batch.with_payloads(payloads, first=end - len(payloads)))

    def _seal(self, payload: Payload) -> bytes:
        return blake2b(payload, key=self._key, digest_size=SIZE).digest()

    def snapshot(self) -> SealSnapshot:
        return SealSnapshot(broken=self.env.counters[BROKEN])
