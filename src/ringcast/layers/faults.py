"""Faults on purpose: a real group loses datagrams, so that repair is seen to work outside the
simulator too."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Part, Spec
from ringcast.core.stack.ports import Gate
from ringcast.core.stack.registry import protocol
from ringcast.errors import ConfigError


@protocol(role="faults", under="unicast", offers=(Gate,), shared=False)
@dataclass(frozen=True, kw_only=True)
class Faults(Spec):
    """What is done to datagrams that arrive, at each member by itself."""

    loss: float = 0.0
    """The chance that a datagram is thrown away on arrival, whatever it carries."""

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ConfigError(f"Faults.loss is {self.loss}: give a chance from 0 to below 1")

    def build(self, env: Env) -> FaultsPart:
        """The gate with these settings."""
        return FaultsPart(env, self)


class FaultsPart(Part):
    """The gate that every datagram has to pass."""

    def __init__(self, env: Env, spec: Faults) -> None:
        super().__init__(env)
        self._loss = spec.loss

    def admit(self) -> bool:
        """Whether the next datagram is let in."""
        if self._loss and self.env.rng.random() < self._loss:
            self.env.counters["dropped_on_purpose"] += 1
            return False
        return True
