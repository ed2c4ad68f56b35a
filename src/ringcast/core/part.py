"""What a stack is made of: parts that own kinds of control frames, and layers that batches climb
through.

A part is a state machine. It is given frames, timers and views, and it touches nothing but its
`Env`: the time of the step, the dice, the timers, the outbox and the counters. Parts that need each
other are handed a `Ports` when the stack is built; none looks another up later.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Self

from ringcast.core.address import Address
from ringcast.core.batch import Batch
from ringcast.core.env import Env
from ringcast.core.events import Skipped
from ringcast.core.frames import Frame
from ringcast.core.view import View
from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from ringcast.core.ports import Ports


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


class Part:
    """A state machine that owns the frames of `kinds`."""

    kinds: ClassVar[tuple[type[Frame], ...]] = ()
    hears: ClassVar[bool] = False
    """Whether `on_heard` is to be called for every datagram."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def connect(self, ports: Ports) -> None:
        """Take the ports that this part needs; called once, before anything else."""

    def on_start(self) -> None:
        """The stack begins to run."""

    def on_view(self, installation: Installation) -> None:
        """A view is installed: all that was sent in the former one has been handed up."""

    def on_suspect(self, member: Address, suspected: bool) -> None:
        """A member of the view is suspected, or no longer."""

    def on_heard(self, source: Address) -> None:
        """A datagram of somebody has come, whatever it carries."""

    def on_frame(self, frame: Frame, source: Address) -> None:
        """A frame of one of the part's kinds has come."""

    def on_timer(self, name: str) -> None:
        """A timer that the part set is due."""

    def snapshot(self) -> dict[str, object]:
        """Marks and counters as plain data, for `stats()`."""
        return {}


class Layer(Part):
    """A part that batches pass through: down from the application to the wire, up the other way."""

    above: Layer
    below: Layer

    def down(self, batch: Batch) -> None:
        """Take a batch that is to be sent. The caller has asked `room` before."""
        self.below.down(batch)

    def up(self, batch: Batch) -> None:
        """Take a batch that has come."""
        self.above.up(batch)

    def skipped(self, event: Skipped) -> None:
        """Messages to the group will not come, in the place where `up` would have brought them."""
        self.above.skipped(event)

    def room(self, dest: Address | None) -> tuple[int, int]:
        """How many messages and bytes may come down now; no messages means wait for `resume`."""
        return self.below.room(dest)

    def resume(self) -> None:
        """There may be room below again: send what was held, then tell the layer above."""
        self.above.resume()

    @property
    def drained(self) -> bool:
        """Whether all that was accepted here or above has gone down."""
        return self.above.drained

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

    def __new__(cls, **settings: object) -> Self:
        known = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]
        for name, value in settings.items():
            if name not in known:
                names = ", ".join(known)
                raise ConfigError(f"{cls.__name__} has no setting {name}: it has {names}")
            _check_type(f"{cls.__name__}.{name}", value, known[name])
        return super().__new__(cls)

    def build(self, env: Env) -> Part:
        """The state machine with these settings."""
        raise NotImplementedError

    def values(self) -> dict[str, object]:
        """Every effective value by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


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
        raise ConfigError(f"{name} is {value!r}: give {words}")
    if isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{name} is {value!r}: give {words} that is finite")
