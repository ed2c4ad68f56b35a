"""StackSpec: what a member's stack consists of, as data that can be printed, compared, changed and
written as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringcast.core.address import Peer
from ringcast.core.env import Dice
from ringcast.core.part import Spec
from ringcast.core.stack import Stack
from ringcast.errors import ConfigError
from ringcast.layers.faults import Faults
from ringcast.layers.flow import Flow
from ringcast.layers.fragment import Fragment
from ringcast.layers.large import Large
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.pace import Pace
from ringcast.layers.unicast.layer import Unicast
from ringcast.layers.wire import UDP_MTU_MAX, Wire
from ringcast.parts.discovery import Discovery
from ringcast.parts.failure import Failure
from ringcast.parts.membership.settings import Membership
from ringcast.parts.slow import Slow
from ringcast.parts.stability import Stability
from ringcast.transports import Memory, Tcp, Udp

PROTOCOLS: dict[str, type[Spec]] = {
    protocol.__name__: protocol
    for protocol in (
        Large,
        Fragment,
        Flow,
        Pace,
        NakAck4,
        NakAck3,
        Unicast,
        Faults,
        Wire,
        Stability,
        Slow,
        Discovery,
        Failure,
        Membership,
        Udp,
        Tcp,
        Memory,
    )
}
"""Every protocol by the name that users and TOML files call it."""

ORDER = (
    "large",
    "fragment",
    "flow",
    "multicast",
    "unicast",
    "faults",
    "wire",
    "stability",
    "slow",
    "discovery",
    "failure",
    "membership",
    "transport",
)
"""The roles from the top of the ladder to the wire, then the control parts, then the transport."""

REQUIRED = ("multicast", "unicast", "wire", "discovery", "failure", "membership")


@dataclass(frozen=True)
class StackSpec:
    """An ordered list of protocols with all their settings. Never changes; the verbs return new
    ones."""

    protocols: tuple[Spec, ...]

    def __init__(self, *protocols: Spec) -> None:
        """Raises ConfigError for a stack that cannot work, with what to change."""
        object.__setattr__(self, "protocols", protocols)
        _check_order(protocols)
        _check_needs(protocols)

    # Changing ------------------------------------------------------------------------------------

    def replace(self, *protocols: Spec | str, **settings: object) -> StackSpec:
        """The stack with other protocols or settings.

        A protocol takes the place of the one with its role: `replace(NakAck4(capacity=10))`.
        Settings alone change those that are there: `replace("Unicast", capacity=10)`; without a
        name they go to the one protocol that has them, or to the multicast if it is among several.
        """
        named = [protocol for protocol in protocols if isinstance(protocol, str)]
        if named:
            changed = [_with(self[name], settings) for name in named]
            return self.replace(*(p for p in protocols if isinstance(p, Spec)), *changed)
        return self._replace([p for p in protocols if isinstance(p, Spec)], settings)

    def _replace(self, protocols: Sequence[Spec], settings: dict[str, object]) -> StackSpec:
        by_role = {protocol.role: protocol for protocol in protocols}
        for role, protocol in by_role.items():
            if self._find(role) is None:
                name = type(protocol).__name__
                raise ConfigError(f"the stack has nothing that {name} could replace: insert() it")
        parts = [by_role.get(protocol.role, protocol) for protocol in self.protocols]
        if isinstance(by_role.get("transport"), Udp) and "wire" not in by_role:
            parts = [_for_udp(part) for part in parts]
        for name, value in settings.items():
            owner = _owner(parts, name)
            parts[owner] = _with(parts[owner], {name: value})
        return StackSpec(*parts)

    def with_settings(self, settings: Mapping[str, object]) -> StackSpec:
        """The stack with settings changed that are named in full, as in "NakAck4.capacity"; a role
        will do for the protocol ("multicast.capacity"). Raises ConfigError.

        Those of one protocol are changed together, so that only their new values have to fit.
        """
        changes: dict[str, dict[str, object]] = {}
        for full, value in settings.items():
            protocol, dot, name = full.rpartition(".")
            if not dot:
                raise ConfigError(f'{full} is no setting: name its protocol, "NakAck4.{full}"')
            own = changes.setdefault(self[protocol].role, {})
            if name in own:
                raise ConfigError(f"{full} is set twice: give one value")
            own[name] = tuple(value) if isinstance(value, list) else value
        spec = self
        for role, values in changes.items():
            spec = spec.replace(role, **values)
        return spec

    def without(self, name: str) -> StackSpec:
        """The stack without this protocol, named like its class or its role."""
        kept = [p for p in self.protocols if name not in (type(p).__name__, p.role)]
        if len(kept) == len(self.protocols):
            raise ConfigError(f"the stack has no {name}: it has {self._names}")
        return StackSpec(*kept)

    def insert(self, *protocols: Spec) -> StackSpec:
        """The stack with these protocols, each in its place; one with the same role gives way."""
        roles = {protocol.role for protocol in protocols}
        kept = [protocol for protocol in self.protocols if protocol.role not in roles]
        parts = sorted([*kept, *protocols], key=lambda protocol: ORDER.index(protocol.role))
        return StackSpec(*parts)

    # Reading -------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Spec]:
        return iter(self.protocols)

    def __getitem__(self, name: str) -> Spec:
        found = self._find(name)
        if found is None:
            raise ConfigError(f"the stack has no {name}: it has {self._names}")
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __str__(self) -> str:
        lines = []
        for protocol in self.protocols:
            settings = ", ".join(f"{name}={value!r}" for name, value in protocol.values().items())
            lines.append(f"{type(protocol).__name__}({settings})")
        return "\n".join(lines)

    def _find(self, name: str) -> Spec | None:
        return next((p for p in self.protocols if name in (type(p).__name__, p.role)), None)

    @property
    def _names(self) -> str:
        return ", ".join(type(protocol).__name__ for protocol in self.protocols)

    # TOML ----------------------------------------------------------------------------------------

    def to_toml(self) -> str:
        """The stack as TOML: a table per protocol, in order, with every value."""
        tables = []
        for protocol in self.protocols:
            rows = [f"{name} = {toml_value(value)}" for name, value in protocol.values().items()]
            tables.append("\n".join([f"[{type(protocol).__name__}]", *rows]))
        return "\n\n".join(tables) + "\n"

    @classmethod
    def from_toml(cls, text: str) -> StackSpec:
        """The stack that a TOML text describes. Raises ConfigError."""
        try:
            tables: dict[str, object] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"the spec is not TOML: {error}") from None
        protocols = []
        for name, settings in tables.items():
            if name not in PROTOCOLS or not isinstance(settings, dict):
                raise ConfigError(f"there is no protocol {name}: there are {', '.join(PROTOCOLS)}")
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
            protocols.append(PROTOCOLS[name](**values))
        return cls(*protocols)

    @classmethod
    def load(cls, path: str | Path) -> StackSpec:
        """The stack in a TOML file. Raises ConfigError."""
        try:
            return cls.from_toml(Path(path).read_text())
        except OSError as error:
            raise ConfigError(f"cannot read the spec {path}: {error.strerror}") from None

    # Building ------------------------------------------------------------------------------------

    def build(self, peer: Peer, group: str, rng: Dice, clock_offset: float = 0.0) -> Stack:
        """A member's stack; see `Stack` for its verbs."""
        specs = [protocol for protocol in self.protocols if protocol.role != "transport"]
        return Stack(specs, peer, group, rng, clock_offset)


def _check_order(protocols: Sequence[Spec]) -> None:
    places: list[tuple[int, str]] = []
    for protocol in protocols:
        name = type(protocol).__name__
        if getattr(protocol, "role", "") not in ORDER:
            raise ConfigError(f"{name} is no protocol: give {', '.join(PROTOCOLS)}")
        place = ORDER.index(protocol.role)
        if places and place == places[-1][0]:
            raise ConfigError(f"{places[-1][1]} and {name} fill the same place: keep one of them")
        if places and place < places[-1][0]:
            raise ConfigError(f"{name} stands below {places[-1][1]}: it has to stand above it")
        places.append((place, name))


def _check_needs(protocols: Sequence[Spec]) -> None:
    by_role = {protocol.role: protocol for protocol in protocols}
    for role in REQUIRED:
        if role not in by_role:
            raise ConfigError(
                f"the stack has nothing for {role}: add it, or begin with presets.lan()"
            )
    table = isinstance(by_role["multicast"], NakAck3)
    if "stability" in by_role and not table:
        raise ConfigError("Stability needs a table to purge: use NakAck3, or leave Stability out")
    if table and "stability" not in by_role:
        raise ConfigError("NakAck3 is purged by stability only: add Stability(), or use NakAck4")
    wire, transport = by_role["wire"], by_role.get("transport")
    if isinstance(wire, Wire) and isinstance(transport, Udp) and wire.mtu > UDP_MTU_MAX:
        raise ConfigError(
            f"Wire.mtu is {wire.mtu:,}: give up to {UDP_MTU_MAX:,} bytes, which fit a datagram of"
            " Udp"
        )
    if "large" in by_role and "fragment" not in by_role:
        raise ConfigError("Large acks whole messages: add Fragment() below it")


def _for_udp(part: Spec) -> Spec:
    """What a stream carried at once has to fit a datagram now."""
    is_too_large = isinstance(part, Wire) and part.mtu > UDP_MTU_MAX
    return _with(part, {"mtu": Wire().mtu}) if is_too_large else part


def _owner(parts: Sequence[Spec], name: str) -> int:
    """The place of the one protocol that has this setting."""
    owners = [place for place, part in enumerate(parts) if name in part.values()]
    if not owners:
        raise ConfigError(f"no protocol of the stack has a setting {name}")
    main = [place for place in owners if parts[place].role == "multicast"]
    if len(owners) > 1 and not main:
        names = " and ".join(type(parts[place]).__name__ for place in owners)
        raise ConfigError(f"{names} have a setting {name}: name the one that you mean")
    return (main or owners)[0]


def _with(part: Spec, settings: dict[str, object]) -> Spec:
    return type(part)(**{**part.values(), **settings})


def toml_value(value: object) -> str:
    """A setting's value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)
