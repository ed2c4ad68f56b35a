"""StackSpec: what a member's stack consists of, as data that can be printed, compared, changed and
written as TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.text import shortened
from ringcast.core.stack import registry
from ringcast.core.stack.env import Dice
from ringcast.core.stack.part import Spec
from ringcast.core.stack.ports import nothing_for
from ringcast.core.stack.stack import Stack
from ringcast.core.stack.wiring import REQUIRED
from ringcast.core.wire.outbox import MTU
from ringcast.core.wire.seal import Seal, SealMaker
from ringcast.errors import ConfigError, did_you_mean
from ringcast.layers.sequencer import Sequencer
from ringcast.protocols import find, named

SENTENCE_MAX = 2_000
"""Characters of a sentence about a TOML text, which may have names and values of any length."""


@dataclass(frozen=True)
class StackSpec:
    """An ordered list of protocols with all their settings. Never changes; the verbs return new
    ones.

        from ringcast import StackSpec, presets
        from ringcast.protocols import SlowMembers

        spec = presets.lan().insert(SlowMembers(policy="skip")).replace("NakAck4", capacity=4096)
        assert StackSpec.from_toml(spec.to_toml()) == spec
    """

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
        _check_instances([protocol for protocol in protocols if not isinstance(protocol, str)])
        if named:
            changed = [self[name].changed(settings) for name in named]
            return self.replace(*(p for p in protocols if isinstance(p, Spec)), *changed)
        return self._replace([p for p in protocols if isinstance(p, Spec)], settings)

    def _replace(self, protocols: Sequence[Spec], settings: dict[str, object]) -> StackSpec:
        for protocol in protocols:
            if self._find(protocol.role) is None:
                name = type(protocol).__name__
                raise ConfigError(f"the stack has nothing that {name} could replace: insert() it")
        parts = _replaced(self.protocols, protocols)
        for name, value in settings.items():
            owner = _owner(parts, name)
            parts[owner] = parts[owner].changed({name: value})
        return StackSpec(*parts)

    def with_settings(self, settings: Mapping[str, object]) -> StackSpec:
        """The stack with settings changed that are named in full, as in "NakAck4.capacity"; a role
        will do for the protocol ("multicast.capacity"). Raises ConfigError.

        Those of one protocol are changed together, so that only their new values have to fit.
        """
        return self.changed(settings=settings)

    def changed(
        self,
        *,
        without: Iterable[str] = (),
        insert: Iterable[Spec] = (),
        settings: Mapping[str, object] | None = None,
    ) -> StackSpec:
        """The stack without some protocols, then with others, then with settings changed that are
        named in full. Only the result has to work. Raises ConfigError."""
        parts = list(self.protocols)
        for name in without:
            parts.remove(_named_part(parts, name))
        parts = _inserted(parts, insert)
        changes: dict[str, dict[str, object]] = {}
        for full, value in (settings or {}).items():
            protocol, dot, name = full.rpartition(".")
            if not (dot and protocol and name):
                raise ConfigError(_no_setting(full, parts))
            own = changes.setdefault(_named_part(parts, protocol).role, {})
            if name in own:
                raise ConfigError(f"{full} is set twice: give one value")
            own[name] = tuple(value) if isinstance(value, list) else value
        for role, values in changes.items():
            parts = _replaced(parts, [_named_part(parts, role).changed(values)])
        return StackSpec(*parts)

    def without(self, name: str) -> StackSpec:
        """The stack without this protocol, named like its class or its role."""
        return self.changed(without=[name])

    def with_total_order(self) -> StackSpec:
        """The stack with a `Sequencer`: all members deliver all messages in one order."""
        return self.insert(Sequencer())

    def insert(self, *protocols: Spec) -> StackSpec:
        """The stack with these protocols, each in its place; one with the same role gives way."""
        return self.changed(insert=protocols)

    # Reading -------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Spec]:
        return iter(self.protocols)

    def __getitem__(self, name: str) -> Spec:
        return _named_part(self.protocols, name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __str__(self) -> str:
        lines = []
        for protocol in self.protocols:
            settings = ", ".join(f"{name}={value!r}" for name, value in protocol.values().items())
            lines.append(f"{type(protocol).__name__}({settings})")
        return "\n".join(lines)

    def _find(self, name: str) -> Spec | None:
        return _find_part(self.protocols, name)

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
            return cls._from_toml(text)
        except ConfigError as error:  # The text may be of any origin, and steers no terminal.
            raise ConfigError(shortened(str(error), SENTENCE_MAX)) from None

    @classmethod
    def _from_toml(cls, text: str) -> StackSpec:
        try:
            tables: dict[str, object] = tomllib.loads(text)
        except ValueError as error:  # Not TOML, or a number with thousands of digits.
            raise ConfigError(f"the spec is not TOML: {error}") from None
        except RecursionError:
            raise ConfigError(
                "the spec has values nested too deeply: write lists of values"
            ) from None
        protocols = []
        for name, settings in tables.items():
            protocol = named(name)
            if not isinstance(settings, dict):
                raise ConfigError(f"{name} is {settings!r}: write a table, [{name}]")
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
            protocols.append(protocol(**values))
        return cls(*protocols)

    @classmethod
    def load(cls, path: str | Path) -> StackSpec:
        """The stack in a TOML file. Raises ConfigError."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read the spec {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"cannot read the spec {path}: it is not text in UTF-8") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    # Building ------------------------------------------------------------------------------------

    def build(
        self,
        peer: Peer,
        group: str,
        rng: Dice,
        clock_offset: float = 0.0,
        mtu: int = MTU,
        seal: Seal | None = None,
    ) -> Stack:
        """A member's stack over a transport with this mtu; see `Stack` for its verbs.

        seal: that of a closed group, as `make_seal` returned it.
        """
        specs = [
            protocol
            for protocol in self.protocols
            if protocol.role != "transport" and not isinstance(protocol, SealMaker)
        ]
        return Stack(specs, peer, group, rng, clock_offset, mtu, seal)

    def make_seal(self, group: str, me: Address, given: Seal | None = None) -> Seal | None:
        """The seal of one life of a member: the given one, or what a protocol of the stack makes.
        Raises ConfigError when there would be two."""
        makers = [protocol for protocol in self.protocols if isinstance(protocol, SealMaker)]
        names = [type(maker).__name__ for maker in makers] + ([] if given is None else ["a key"])
        if len(names) > 1:
            raise ConfigError(f"{' and '.join(names)} would seal every datagram: give one of them")
        return makers[0].make_seal(group, me) if makers else given


def _check_instances(protocols: Sequence[object]) -> None:
    """Raises ConfigError for a class without its parentheses, and for what is not a protocol."""
    for protocol in protocols:
        if isinstance(protocol, type):
            raise ConfigError(f"{protocol.__name__} is a class: write {protocol.__name__}()")
        if not isinstance(protocol, Spec):
            raise ConfigError(f"{protocol!r} is not a protocol: give one, say Sequencer()")


def _find_part(parts: Sequence[Spec], name: str) -> Spec | None:
    """The protocol with this name or role, or former name."""
    for part in parts:
        if name in (type(part).__name__, part.role):
            return part
    kind = find(name)
    return next((part for part in parts if type(part) is kind), None)


def _named_part(parts: Sequence[Spec], name: str) -> Spec:
    """The same. Raises ConfigError when there is none."""
    found = _find_part(parts, name)
    if found is None:
        names = [type(part).__name__ for part in parts]
        raise ConfigError(
            f"the stack has no {name}: it has {', '.join(names)}{did_you_mean(name, names)}"
        )
    return found


def _inserted(parts: Sequence[Spec], protocols: Iterable[Spec]) -> list[Spec]:
    """The protocols with others, each in its place; one with the same role gives way."""
    added = list(protocols)
    _check_instances(added)
    roles = {registry.of(type(protocol)).role for protocol in added}
    kept = [part for part in parts if part.role not in roles]
    order = registry.order()
    return sorted([*kept, *added], key=lambda part: order.index(part.role))


def _replaced(parts: Sequence[Spec], protocols: Sequence[Spec]) -> list[Spec]:
    """The protocols with others in place of those with their roles, which may change the rest."""
    by_role = {protocol.role: protocol for protocol in protocols}
    replaced = [by_role.get(part.role, part) for part in parts]
    for protocol in protocols:
        replaced = [part if part.role in by_role else protocol.adapt(part) for part in replaced]
    return replaced


def _no_setting(full: str, parts: Sequence[Spec]) -> str:
    """What to write instead of a text that names no setting of a protocol."""
    part = _find_part(parts, full.rstrip("."))
    if part is not None:
        name, settings = type(part).__name__, list(part.values())
        example = f', for example "{name}.{settings[0]}"' if settings else ""
        return f'"{full}" is not a setting: name one of {name}{example}'
    owners = [type(part).__name__ for part in parts if full in part.values()]
    example = f'"{owners[0]}.{full}"' if owners else 'for example "NakAck4.capacity"'
    return f'"{full}" is not a setting: name its protocol, {example}'


def _check_order(protocols: Sequence[Spec]) -> None:
    order = registry.order()
    places: list[tuple[int, str]] = []
    for protocol in protocols:
        name = type(protocol).__name__
        place = order.index(registry.of(type(protocol)).role)
        if places and place == places[-1][0]:
            raise ConfigError(f"{places[-1][1]} and {name} fill the same place: keep one of them")
        if places and place < places[-1][0]:
            raise ConfigError(f"{name} stands below {places[-1][1]}: it has to stand above it")
        places.append((place, name))


def _check_needs(protocols: Sequence[Spec]) -> None:
    there: set[type | str] = set()
    for protocol in protocols:
        there |= {protocol.role, *registry.of(type(protocol)).offers}
    for port in REQUIRED:
        if port not in there:
            raise ConfigError(nothing_for(port))
    by_role = {protocol.role: protocol for protocol in protocols}
    for protocol in protocols:
        name = type(protocol).__name__
        for need, purpose in registry.of(type(protocol)).needs.items():
            if need not in there:
                fitting = " or ".join(made.name for made in registry.filling(need))
                raise ConfigError(
                    f"{name} needs {purpose}: use {fitting or need}, or leave {name} out"
                )
        protocol.check(by_role)


def _owner(parts: Sequence[Spec], name: str) -> int:
    """The place of the one protocol that has this setting."""
    owners = [n for n, part in enumerate(parts) if name in part.values() or name in part.renamed]
    if not owners:
        raise ConfigError(f"no protocol of the stack has a setting {name}")
    main = [place for place in owners if parts[place].role == "multicast"]
    if len(owners) > 1 and not main:
        names = " and ".join(type(parts[place]).__name__ for place in owners)
        raise ConfigError(f"{names} have a setting {name}: name the one that you mean")
    return (main or owners)[0]


def toml_value(value: object) -> str:
    """A setting's value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)
