"""What a stack consists of, setting by setting, in words: value, unit, where it came from, why.

The words are those that stand under each field in the code, so they cannot differ from it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from ringcast import presets, protocols
from ringcast.core.stack.part import Spec
from ringcast.errors import ConfigError, did_you_mean
from ringcast.spec import StackSpec

DEFAULT, PRESET, FILE, ARGUMENT = "default", "preset", "file", "argument"
"""Where a value may be from."""

ALIKE = " The same at all members: one with another value cannot join."
"""Added to the sentence of a setting that all members need alike."""

_UNITS = (
    *("seconds", "bytes", "messages", "datagrams", "gaps"),
    *("members", "connections", "reminders", "routers"),
)


@dataclass(frozen=True)
class Setting:
    """One effective value."""

    name: str
    value: object
    unit: str
    """What is counted; empty for texts, switches and ports."""
    source: str
    """"default", "preset", "file" or "argument"."""
    about: str
    """The sentence under the field."""

    @property
    def text(self) -> str:
        """The value with its unit."""
        value = self.value
        if isinstance(value, bool):
            return "true" if value else "false"  # As TOML files and --set take it.
        if isinstance(value, tuple):
            return ", ".join(map(str, value)) or "none"
        if isinstance(value, str):
            return f'"{value}"'
        number = f"{value:,}" if self.unit and isinstance(value, int) else str(value)
        return f"{number} {self.unit}".rstrip()


@dataclass(frozen=True)
class Protocol:
    """One protocol of a stack with all of its settings."""

    name: str
    role: str
    about: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Explanation:
    """A stack from top to bottom."""

    name: str
    spec: StackSpec
    promise: str
    """What a preset promises; empty for a file."""
    protocols: tuple[Protocol, ...]

    @property
    def differs(self) -> str:
        """How the stack differs from `lan`, of which all presets are differences."""
        return differences(self.spec)


def explain(name: str, change: Callable[[StackSpec], StackSpec] | None = None) -> Explanation:
    """Explain a preset, or the stack in a TOML file, with a change to it. Raises ConfigError."""
    explanation = _as_named(name)
    if change is None:
        return explanation
    spec = change(explanation.spec)
    before = {protocol.name: protocol for protocol in explanation.protocols}
    changed = (_marked(part, before.get(type(part).__name__)) for part in spec)
    return Explanation(name, spec, explanation.promise, tuple(changed))


def _as_named(name: str) -> Explanation:
    if name in presets.PRESETS:
        make = presets.PRESETS[name]
        spec = make()
        return Explanation(name, spec, inspect.getdoc(make) or "", _protocols(spec, None))
    if not name.endswith(".toml"):
        names = ", ".join(presets.PRESETS)
        same = [p for p in protocols.names() if protocols.named(p).role == name.lower()]
        close = did_you_mean(name, [*protocols.names(), *presets.PRESETS])
        hint = f"; did you mean {' or '.join(same)}?" if same else close
        raise ConfigError(
            f"unknown preset {name}: choose one of {names}, a protocol or FILE.toml{hint}"
        )
    spec = StackSpec.load(name)
    tables: dict[str, dict[str, object]] = tomllib.loads(Path(name).read_text())
    given = {type(spec[table]).__name__: settings for table, settings in tables.items()}
    return Explanation(name, spec, "", _protocols(spec, given))


def _marked(part: Spec, before: Protocol | None) -> Protocol:
    """A protocol of a changed stack; what the change has set comes from an argument."""
    after = _protocol(part, {type(part).__name__: {}})
    known = {setting.name: setting for setting in (before or explain_protocol(type(part))).settings}
    settings = (
        known[setting.name]
        if setting.value == known[setting.name].value
        else replace(setting, source=ARGUMENT)
        for setting in after.settings
    )
    return replace(after, settings=tuple(settings))


def explain_protocol(kind: type[Spec]) -> Protocol:
    """One protocol with its defaults."""
    return _protocol(kind(), {kind.__name__: {}})


def protocol_text(protocol: Protocol, width: int = 100) -> str:
    """One protocol for people, in lines of at most `width` characters."""
    lines = list(_wrapped(f"{protocol.name} ({protocol.role}): {protocol.about}", width, ""))
    for setting in protocol.settings:
        lines.append(f"  {setting.name} = {setting.text}")
        lines.extend(_wrapped(setting.about, width, "      "))
    return "\n".join(lines)


def differences(spec: StackSpec) -> str:
    """How a stack differs from `lan`, in a sentence; empty when it does not."""
    common = {protocol.role: protocol for protocol in presets.lan()}
    words = []
    for protocol in spec:
        name, other = type(protocol).__name__, common.pop(protocol.role, None)
        if other is None:
            words.append(f"has {name} besides")
        elif type(other) is not type(protocol):
            words.append(f"has {name} instead of {type(other).__name__}")
        elif other != protocol:
            changed = [k for k, v in protocol.values().items() if other.values()[k] != v]
            words.append(f"sets {', '.join(changed)} of {name}")
    words.extend(f"has no {type(missing).__name__}" for missing in common.values())
    return "; ".join(words)


def to_text(explanation: Explanation, width: int = 100) -> str:
    """The explanation for people, in lines of at most `width` characters."""
    lines = [f"The stack {explanation.name}, from top to bottom"]
    lines.extend(_wrapped(explanation.promise, width, "  "))
    if explanation.differs:
        lines.extend(_wrapped(f"Unlike lan, it {explanation.differs}.", width, "  "))
    for protocol in explanation.protocols:
        lines.extend(["", *_wrapped(f"{protocol.name}: {protocol.about}", width, "")])
        for setting in protocol.settings:
            lines.append(f"  {setting.name} = {setting.text}  ({setting.source})")
            lines.extend(_wrapped(setting.about, width, "      "))
    return "\n".join(lines)


def to_data(explanation: Explanation) -> dict[str, object]:
    """The explanation as plain data, for JSON."""
    return {
        "name": explanation.name,
        "promise": " ".join(explanation.promise.split()),
        "differs_from_lan": explanation.differs,
        "protocols": [asdict(protocol) for protocol in explanation.protocols],
    }


def to_toml(explanation: Explanation, width: int = 100) -> str:
    """The stack as TOML that can be changed and loaded, each value under its sentence."""
    abouts = {
        protocol.name: {setting.name: setting.about for setting in protocol.settings}
        for protocol in explanation.protocols
    }
    lines, current = list[str](), ""
    for line in explanation.spec.to_toml().splitlines():
        if line.startswith("["):
            current = line.strip("[]")
        elif line:
            lines.extend(_wrapped(abouts[current][line.partition(" = ")[0]], width, "# "))
        lines.append(line)
    return "\n".join(lines) + "\n"


# One setting --------------------------------------------------------------------------------------


def _protocols(spec: StackSpec, given: dict[str, dict[str, object]] | None) -> tuple[Protocol, ...]:
    """All protocols; `given` is what a file says, and None for a preset."""
    return tuple(_protocol(part, given) for part in spec)


def _protocol(part: Spec, given: dict[str, dict[str, object]] | None) -> Protocol:
    name = type(part).__name__
    abouts, defaults = sentences(type(part)), type(part)().values()
    settings = []
    for key, value in part.values().items():
        if given is not None:
            source = FILE if key in given[name] else DEFAULT
        else:
            source = DEFAULT if value == defaults[key] else PRESET
        about = abouts.get(key, "") + (ALIKE if key in part.alike else "")
        settings.append(Setting(key, value, unit(key, value, about), source, about))
    summary = (inspect.getdoc(part) or "").partition("\n\n")[0]
    return Protocol(name, part.role, " ".join(summary.split()), tuple(settings))


def unit(name: str, value: object, about: str) -> str:
    """What a number counts, as far as its name or its sentence says so."""
    if isinstance(value, float):
        return "" if "chance" in about else "seconds"
    if isinstance(value, bool) or not isinstance(value, int):
        return ""
    if name == "port" or name.endswith("_port"):
        return ""
    if name.endswith("bytes") or " in bytes" in about:
        return "bytes"
    words = re.findall(r"[a-z]+", about.lower())
    return next((word for word in words if word in _UNITS), "")


def sentences(protocol: type[Spec]) -> dict[str, str]:
    """The sentence under each field of a protocol's settings; none where there is no source."""
    found: dict[str, str] = {}
    for owner in reversed(protocol.__mro__):
        if issubclass(owner, Spec):
            found.update(strings_under_fields(owner))
    return found


def strings_under_fields(owner: type) -> Iterator[tuple[str, str]]:
    """The names of a class's fields that have a sentence under them, with that sentence."""
    try:
        source = textwrap.dedent(inspect.getsource(owner))
    except OSError:
        return
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.ClassDef)
    for field, below in pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, " ".join(text.split())


def _wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    """Paragraphs, each in lines of its own."""
    for paragraph in filter(None, text.split("\n\n")):
        yield from textwrap.wrap(
            " ".join(paragraph.split()),
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
