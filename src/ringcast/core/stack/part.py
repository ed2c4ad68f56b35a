"""What a stack is made of: parts that own kinds of control frames, and layers that batches climb
through.

A part is a state machine. It is given frames, timers and views, and it touches nothing but its
`Env`: the time of the step, the dice, the timers, the outbox and the counters. Parts that need each
other are handed a `Ports` when the stack is built; none looks another up later.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Self

from ringcast.core.model.address import Address
from ringcast.core.model.batch import Batch
from ringcast.core.model.events import Skipped
from ringcast.core.model.view import View
from ringcast.core.stack.env import Env
from ringcast.core.stack.snapshot import PartSnapshot
from ringcast.core.wire.frames import Frame
from ringcast.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from ringcast.core.stack.ports import Ports

Receipt = Callable[[], Iterable[Address]]
"""Names the members that lack something which was sent before it was made."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A view as parts get it: with what it replaces, and where each member's messages of it
    begin."""

    view: View
    old: View | None
    starts: dict[Address, int]
    """Per member of the view: its messages up to here belong to earlier views."""
    joined: tuple[Address, ...]
    left: tuple[Address, ...]
    is_merge: bool = False
    """Whether it merges several groups."""
    leavers: tuple[Address, ...] = ()
    """The members that have left in order, of the view that it replaces or of one that it merges
    with."""


class Part:
    """A state machine that owns the frames of `kinds`."""

    kinds: ClassVar[tuple[type[Frame], ...]] = ()
    hears: ClassVar[bool] = False
    """Whether `on_heard` is to be called for every datagram."""

    role_name = ""
    """What it is in the stack, as its registration says; the stack sets it."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def connect(self, ports: Ports) -> None:
        """Take the ports that this part needs; called once, before anything else."""

    def on_start(self) -> None:
        """The stack begins to run."""

    def on_view(self, installation: Installation) -> None:
        """A view is installed: all that was sent in the former one has been handed up."""

    def on_resize(self) -> None:
        """The largest datagram has another size now (`env.mtu`)."""

    def on_suspect(self, member: Address, suspected: bool) -> None:
        """A member of the view is suspected, or no longer."""

    def on_heard(self, source: Address) -> None:
        """A datagram of `source` has arrived, whatever it carries."""

    def on_frame(self, frame: Frame, source: Address) -> None:
        """Handle a frame of one of the part's kinds."""

    def on_timer(self, name: str) -> None:
        """A timer that the part set is due."""

    @property
    def waits_for(self) -> tuple[Address, ...]:
        """The members without whom this part lets nothing more be sent."""
        return ()

    def snapshot(self) -> PartSnapshot | None:
        """Marks and counters at this moment, for `stats()`; None when there are none."""
        return None


class Layer(Part):
    """A part that batches pass through: down from the application to the wire, up the other way."""

    above: Layer
    below: Layer
    reads_payloads: ClassVar[bool] = True
    """Whether the layer looks at the contents of the application's messages that come up."""

    def down(self, batch: Batch) -> None:
        """Take a batch that is to be sent. The caller has asked `room` before."""
        self.below.down(batch)

    def up(self, batch: Batch) -> None:
        """Take a batch that has arrived."""
        self.above.up(batch)

    def skipped(self, event: Skipped) -> None:
        """Messages to the group will not come, in the place where `up` would have brought them."""
        self.above.skipped(event)

    def absorbed(self, batch: Batch) -> None:
        """A layer below keeps these messages, in the place where `up` would have brought them: they
        count as taken once all before them is."""
        self.above.absorbed(batch)

    def room(self, dest: Address | None) -> tuple[int, int]:
        """How many messages and bytes may come down now; no messages means wait for `resume`."""
        return self.below.room(dest)

    @property
    def block_reason(self) -> str:
        """What sends wait for while this layer has no room, as a word for the counters."""
        return self.role_name

    @property
    def block_text(self) -> str:
        """Why this layer has no room, for people; empty where members are to be named."""
        return ""

    def resume(self) -> None:
        """There may be room below again: send what was held, then tell the layer above."""
        self.above.resume()

    def flush(self) -> None:
        """The next view is about to be handed to the application: hand up what is held of the
        former one. Called on every layer, from the bottom to the top."""

    @property
    def max_message(self) -> int:
        """The largest message that may come down, in bytes."""
        return self.below.max_message

    @property
    def max_unit(self) -> int:
        """The largest message that goes on at once when there was room for it, in bytes."""
        return self.below.max_unit

    @property
    def drained(self) -> bool:
        """Whether all that was accepted here or above has gone down."""
        return self.above.drained

    def abandon(self, member: Address) -> int:
        """A member has left: drop what waits here or above to be sent to it alone; how many of the
        application's messages that is."""
        return self.above.abandon(member)

    def receipt(self) -> Receipt | None:
        """A function that names the other members which have not delivered what this layer has
        sent up to now, whenever it is called; None for layers that repeat nothing."""
        return None

    @property
    def pausing(self) -> bool:
        """Whether a layer here or above stops only for a moment, and will send more by itself."""
        return self.above.pausing


class Spec:
    """The settings of one part: frozen, keyword-only, comparable, printable; `build` makes the
    part.

    Every subclass is a frozen dataclass beside its part, with a sentence on the trade-off under
    each field. A setting that does not exist, or has a value of the wrong type, is a ConfigError.
    """

    role: ClassVar[str] = ""
    """What the part is in a stack; each role is filled once."""
    alike: ClassVar[tuple[str, ...]] = ()
    """The settings that have to be the same at all members of a group."""
    alike_beside: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By role: the settings of other protocols that have to be the same in stacks with this one."""
    former: ClassVar[tuple[str, ...]] = ()
    """Settings that have another name and value now; the class accepts them as `InitVar`s."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """By former name: the settings that have another name now. The registry lets the class accept
    and show them, with a warning."""

    def __new__(cls, *unnamed: object, **settings: object) -> Self:
        known = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]
        if unnamed:
            first = next(iter(known), "setting")
            raise ConfigError(
                f"{cls.__name__} takes its settings by name: write {cls.__name__}({first}=…)"
            )
        for given, value in settings.items():
            name = cls.renamed.get(given, given)
            if name in cls.former:
                continue
            if name not in known:
                names = ", ".join(known)
                raise ConfigError(
                    f"{cls.__name__} has no setting {name}: it has {names}"
                    + did_you_mean(name, known)
                )
            _check_type(f"{cls.__name__}.{name}", value, known[name])
        return super().__new__(cls)

    def build(self, env: Env) -> Part:
        """The state machine with these settings."""
        raise NotImplementedError

    def check(self, others: Mapping[str, Spec]) -> None:
        """Raise ConfigError when these settings do not fit the other protocols of the stack, by
        role."""

    def adapt(self, other: Spec) -> Spec:
        """Another protocol of the stack, with its settings changed as this one needs them when it
        takes another's place."""
        return other

    def changed(self, settings: Mapping[str, object]) -> Self:
        """The same protocol with some settings changed. Raises ConfigError."""
        return type(self)(**{**self.values(), **self.current_names(settings, 3)})

    @classmethod
    def current_names(cls, settings: Mapping[str, object], stacklevel: int) -> dict[str, object]:
        """The settings by the names that they have now, with a warning for former ones. Raises
        ConfigError."""
        current = dict(settings)
        for former in cls.renamed.keys() & settings.keys():
            name = cls.renamed[former]
            if name in settings:
                raise ConfigError(f"{cls.__name__}.{former} is now {name}: give only {name}")
            warn_renamed(f"{cls.__name__}.{former}", name, stacklevel + 1)
            current[name] = current.pop(former)
        return current

    def values(self) -> dict[str, object]:
        """Every effective value by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


SHOWN_MAX = 100
"""Characters of a wrong value that an error shows."""


def warn_renamed(former: str, name: str, stacklevel: int) -> None:
    """Warn the caller that a public name has changed."""
    warnings.warn(f"{former} is now {name}", DeprecationWarning, stacklevel=stacklevel + 1)


_TYPES: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
    tuple: ((tuple,), "a tuple"),
}


def _check_type(name: str, value: object, default: object) -> None:
    """A setting has the type of its default."""
    expected = _TYPES.get(type(default))
    if expected is None:
        return
    types, words = expected
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ConfigError(f"{name} is {_shown(value)}: give {words}")
    if isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{name} is {value!r}: give {words} that is finite")


def _shown(value: object) -> str:
    """A wrong value, or its beginning."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
