"""The registry of protocols: each registers beside its class what it is in a stack.

    @protocol(role="flow", under="fragment", offers=(Brake,))
    @dataclass(frozen=True, kw_only=True)
    class Flow(Spec): ...

A stack is listed from top to bottom: the ladder that messages pass through, the wire, the control
parts, the transport. A registration says where its role stands in that list, which ports its part
offers, and what it needs of the others. Nothing else names a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import TypeVar

from ringcast.core.model.batch import CALL, INTERNAL, SERVICE
from ringcast.core.stack.part import Spec, warn_renamed
from ringcast.core.wire.layout import FLAGS_MAX
from ringcast.errors import ConfigError

S = TypeVar("S", bound=Spec)

SERVICE_FLAGS = CALL | SERVICE | INTERNAL
"""Flag bits of batches that belong to no protocol."""


@dataclass(frozen=True)
class Registration:
    """What one protocol is in a stack."""

    spec: type[Spec]
    role: str
    over: str = ""
    """The role that it stands above."""
    under: str = ""
    """The role that it stands below."""
    offers: tuple[type, ...] = ()
    """The ports that its part has."""
    needs: Mapping[type | str, str] = field(default_factory=dict)
    """The ports or roles that a stack with it has to have, and what for."""
    flags: int = 0
    """The flag bits of batches that are its own."""
    former: str = ""
    """The name that it had before; it works for one more version."""
    shared: bool = True
    """Whether all members of a group need it: one without it is refused."""

    @property
    def name(self) -> str:
        """How users and TOML files call it."""
        return self.spec.__name__

    @property
    def path(self) -> str:
        """Where it is defined, as "package.module:Class"."""
        return f"{self.spec.__module__}:{self.spec.__qualname__}"

    @property
    def is_builtin(self) -> bool:
        """Whether it comes with Ringcast."""
        return self.spec.__module__.partition(".")[0] == "ringcast"


_by_name: dict[str, Registration] = {}
_by_former: dict[str, Registration] = {}
_order: list[str] = []


def protocol(
    *,
    role: str,
    over: str = "",
    under: str = "",
    offers: tuple[type, ...] = (),
    needs: Mapping[type | str, str] | None = None,
    flags: int = 0,
    former: str = "",
    shared: bool = True,
) -> Callable[[type[S]], type[S]]:
    """Register a Spec class as a protocol; see `Registration` for the arguments.

    Several protocols may have one role (Flow and Pacing, Udp and Tcp): a stack has one of them.
    Raises ConfigError when the name or a flag bit is another protocol's.
    """

    def register(spec: type[S]) -> type[S]:
        made = Registration(spec, role, over, under, offers, needs or {}, flags, former, shared)
        _check(made)
        if spec.renamed:
            _accept_former_names(spec)
        spec.role = role
        _by_name[made.name] = made
        if former:
            _by_former[former] = made
        _order.clear()
        return spec

    return register


def _accept_former_names(spec: type[Spec]) -> None:
    """Let a Spec class accept settings by their former names, and show them, with a warning."""
    initialize = spec.__init__

    @wraps(initialize)
    def accept(self: Spec, **settings: object) -> None:
        initialize(self, **spec.current_names(settings, 2))

    spec.__init__ = accept  # type: ignore[method-assign, assignment]
    for former, name in spec.renamed.items():
        setattr(spec, former, property(partial(_show_former, former=former, name=name)))


def _show_former(settings: Spec, *, former: str, name: str) -> object:
    warn_renamed(f"{type(settings).__name__}.{former}", name, 2)
    return getattr(settings, name)


def _check(made: Registration) -> None:
    if not made.role:
        raise ConfigError(f"{made.path} has no role: name what it is in a stack")
    known = _by_name.get(made.name)
    if known is not None and known.path != made.path:
        raise ConfigError(f"{made.path} has the name of {known.path}: give it another")
    if not 0 <= made.flags <= FLAGS_MAX or made.flags & SERVICE_FLAGS:
        raise ConfigError(f"{made.path} has flags {made.flags:#x}: {_free_flags()}")
    for other in _by_name.values():
        if other.flags & made.flags and other.role != made.role:
            raise ConfigError(f"{made.path} has a flag of {other.name}: {_free_flags()}")


def _free_flags() -> str:
    used = SERVICE_FLAGS
    for other in _by_name.values():
        used |= other.flags
    free = [f"{1 << bit:#x}" for bit in range(8) if not used & 1 << bit]
    return f"free bits are {', '.join(free) or 'none'}"


# Looking up ---------------------------------------------------------------------------------------


def names() -> list[str]:
    """Every registered protocol by its name, from the top of a stack to its bottom."""
    places = order()
    return sorted(_by_name, key=lambda name: (places.index(_by_name[name].role), name))


def find(name: str) -> Registration | None:
    """The protocol with this name, former name (with a warning) or "package.module:Class"."""
    found = _by_name.get(name)
    if found is None and name in _by_former:
        found = _by_former[name]
        warn_renamed(name, found.name, 3)
    if found is None and ":" in name:
        found = next((made for made in _by_name.values() if made.path == name), None)
    return found


def of(spec: type[Spec]) -> Registration:
    """The registration of a Spec class. Raises ConfigError when it has none."""
    found = _by_name.get(spec.__name__)
    if found is None or found.spec is not spec:
        raise ConfigError(
            f"{spec.__name__} is not a protocol: register it with @protocol(…), or give"
            f" {', '.join(names())}"
        )
    return found


def filling(need: type | str) -> list[Registration]:
    """The protocols that have this role or offer this port."""
    return [
        made
        for made in map(_by_name.__getitem__, names())
        if need == made.role or need in made.offers
    ]


# The order ----------------------------------------------------------------------------------------


def order() -> list[str]:
    """Every role from the top of a stack to its bottom.

    A role that says only what it stands over comes directly above it. Among several roles for one
    place, those from outside of Ringcast come first, by name: the order of imports changes nothing.
    """
    if not _order:
        _order.extend(_sorted())
    return list(_order)


def _sorted() -> list[str]:
    above: dict[str, set[str]] = {made.role: set() for made in _by_name.values()}
    builtin = {made.role for made in _by_name.values() if made.is_builtin}
    late: dict[str, str] = {}
    for made in _by_name.values():
        if made.role in builtin and not made.is_builtin:
            continue  # Another protocol for a known role: the role keeps its place.
        if made.under in above:
            above[made.role].add(made.under)
            if made.over in above:
                above[made.over].add(made.role)
        elif made.over in above:
            late[made.role] = made.over
    out: list[str] = []
    waiting = set(above) - set(late)
    while waiting:
        ready = [role for role in waiting if not (above[role] & waiting)]
        if not ready:
            raise ConfigError(f"{', '.join(sorted(waiting))} stand above each other: change `over`")
        out.append(min(ready, key=lambda role: (role in builtin, role)))
        waiting.remove(out[-1])
    while late:
        role = min(late, key=lambda role: (late[role] not in out, role))
        if late[role] not in out:
            raise ConfigError(f"{', '.join(sorted(late))} stand above each other: change `over`")
        out.insert(out.index(late.pop(role)), role)
    return out
