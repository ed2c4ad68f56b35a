"""The trace of a simulated group: the same rows that live members write, in virtual time.

    trace = SimulatedTrace("trace/")
    world = World(seed=7, spec=presets.lan(), observer=trace)
    ...
    world.settle()
    trace.close(settled=True)

A member that crashes leaves its rows up to that moment. Each life of a member is one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ringcast.core.model.address import Address
from ringcast.core.model.events import Event
from ringcast.core.model.view import ViewId
from ringcast.errors import ConfigError
from ringcast.sim.engine.faults import Parcel
from ringcast.sim.engine.member import Member, ProcessState
from ringcast.sim.engine.network import Fate
from ringcast.sim.engine.observer import WorldListener
from ringcast.trace.tracer import TraceListener
from ringcast.trace.writer import TraceSpec, TraceWriter, trace_directory

SPEC = TraceSpec(rotate_seconds=1e9)
"""A file for each life, however much virtual time passes."""


class SimulatedTrace:
    """Watches a world (`World(observer=…)`) and writes the traces of all its members to `path`."""

    def __init__(
        self, path: str | Path, *, digests: bool = True, inner: WorldListener | None = None
    ) -> None:
        """digests: whether payloads are summed up; inner: a listener that is told the same.

        Raises ConfigError when there are traces at this place: the members of all worlds have the
        same addresses, so that two runs could not be told apart.
        """
        if any(trace_directory(Path(path)).glob("*.parquet")):
            raise ConfigError(f"there are traces in {path} already: name another directory")
        self._path, self._digests, self._inner = Path(path), digests, inner
        self._lives: dict[Address, _Life] = {}
        self._now = 0.0

    def sent(self, now: float, parcel: Parcel, to: str, fates: list[tuple[str, Fate]]) -> None:
        """A datagram was sent."""
        self._now = now
        if self._inner is not None:
            self._inner.sent(now, parcel, to, fates)

    def given(self, now: float, member: Member, event: Event) -> None:
        """An application was given an event."""
        self._now = now
        life = self._lives[member.me]
        life.taken((event,))
        life.settled(member.blocked)
        if self._inner is not None:
            self._inner.given(now, member, event)

    def done(self, now: float, member: Member | None, what: str) -> None:
        """Something was done to a member, or to the world."""
        self._now = now
        if member is not None and member.me not in self._lives:
            self._lives[member.me] = _Life(self._path, member, self._digests)
        elif member is not None and not member.alive:
            in_order = member.state is ProcessState.LEFT and member.stack.closed == "left"
            self._lives[member.me].close(now, in_order, has_all=False)
        if self._inner is not None:
            self._inner.done(now, member, what)

    def close(self, *, settled: bool) -> None:
        """Write the rest. `settled` says that all members have all that was sent in their view."""
        for life in self._lives.values():
            life.close(self._now, in_order=life.member.alive, has_all=settled)


class _Life(TraceListener):
    """One process of a world."""

    def __init__(self, path: Path, member: Member, digests: bool) -> None:
        self.member = member
        super().__init__(lambda: self._stack.env.clock)
        self._closed = False
        self.listen(member.stack, TraceWriter(path, member.me, SPEC), digests)

    def note(self, view: ViewId | None, write: Callable[[], None]) -> None:
        """Write it at once."""
        self._row_writer.write((view, write))

    def close(self, now: float, in_order: bool, has_all: bool) -> None:
        """Nothing more comes."""
        if not self._closed:
            self._closed = True
            self._row_writer.close(int(now * 1e6), in_order, has_all)
