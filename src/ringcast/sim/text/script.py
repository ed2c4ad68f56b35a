"""Scripts: stories of the protocol as text, commands and then the whole trace that they print.

A script is a sequence of blocks. A block is some commands, one a line, then a line `----`, then
what they print, then an empty line. Lines that begin with # tell the story. `rewrite` runs the
commands and puts what they print in place of what stands there, so a script is right when rewriting
changes nothing.

    # The second message is lost on its way to b, and asked for.

    world seed=1 delay=0.001
    join a b
    drop kind=DATA source=a target=b seqno=2
    send a one two three
    settle
    ----
    …

Names of settings in `world` are those of `World` and of the stack's protocols
(NakAck4.capacity=10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ringcast import presets
from ringcast.errors import ConfigError, LocalError, Timeout
from ringcast.sim.engine.faults import Drop, FrameInFlight, Rule
from ringcast.sim.engine.member import Member
from ringcast.sim.engine.world import World
from ringcast.sim.text.show import HIDDEN, Show
from ringcast.spec import StackSpec

RULE = "----"
WORLD_SETTINGS = (
    *("loss", "delay", "duplicate", "reorder", "corrupt", "packet_loss", "mtu"),
    *("bandwidth", "downlink", "shared", "queue"),
)


@dataclass
class Block:
    """Some commands and what they print."""

    commands: list[str] = field(default_factory=list)
    """The lines before the rule, with the comments and empty lines among them."""
    expected: list[str] = field(default_factory=list)


def rewrite(text: str) -> str:
    """The script with what its commands print now. Raises ConfigError for what is not a command."""
    script = Script()
    lines: list[str] = []
    for block in parse(text):
        lines += block.commands
        if any(is_command(line) for line in block.commands):
            lines += [RULE, *script.run(block.commands), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def parse(text: str) -> Iterator[Block]:
    """The blocks of a script."""
    block, printed = Block(), False
    for line in text.splitlines():
        if line == RULE:
            printed = True
        elif not printed:
            block.commands.append(line)
        elif line:
            block.expected.append(line)
        else:
            yield block
            block, printed = Block(), False
    if block.commands or block.expected:
        yield block


def is_command(line: str) -> bool:
    """Whether a line is to be run."""
    return bool(line.strip()) and not line.startswith("#")


class Script:
    """Runs commands on a world and collects what they print."""

    def __init__(self) -> None:
        self._printed: list[str] = []
        self._world: World | None = None
        self._rules: dict[str, Drop] = {}

    def run(self, lines: list[str]) -> list[str]:
        """Run some commands; what they print."""
        self._printed = []
        for line in lines:
            if is_command(line):
                word, *rest = line.split()
                command: Callable[[list[str]], None] | None = getattr(self, f"_do_{word}", None)
                if command is None:
                    raise ConfigError(f"there is no command {word}: {line}")
                try:
                    command(rest)
                except (LocalError, Timeout) as error:
                    self._print(f"{type(error).__name__}: {error}")
        return self._printed

    @property
    def world(self) -> World:
        """The world that the script has made. Raises ConfigError before it has."""
        if self._world is None:
            raise ConfigError("a script begins with the command world")
        return self._world

    def _print(self, line: str) -> None:
        self._printed.append(line)

    def _members(self, words: list[str]) -> list[Member]:
        return [self.world.members[name] for name in words]

    # Making ---------------------------------------------------------------------------------------

    def _do_world(self, words: list[str]) -> None:
        settings = dict(word.split("=", 1) for word in words)
        spec = presets.PRESETS[settings.pop("preset", "lan")]()
        seed = int(settings.pop("seed", "0"))
        hide = [*HIDDEN, *settings.pop("hide", "").split(",")]
        chances = {name: float(settings.pop(name)) for name in WORLD_SETTINGS if name in settings}
        for name, text in settings.items():
            spec = _with(spec, name, _value(text))
        observer = Show(self._print, hide)
        self._world = World(seed, spec, observer=observer, **chances)  # type: ignore[arg-type]

    def _do_join(self, words: list[str]) -> None:
        names, spec = self._names_and_spec(words)
        self.world.join(*names, spec=spec)

    def _do_start(self, words: list[str]) -> None:
        names, spec = self._names_and_spec(words)
        for name in names:
            self.world.start(name, spec)

    def _names_and_spec(self, words: list[str]) -> tuple[list[str], StackSpec]:
        """Names, and the stack with the settings that stand behind them."""
        spec = self.world.spec
        for word in words:
            name, is_setting, text = word.partition("=")
            if is_setting:
                spec = _with(spec, name, _value(text))
        return [word for word in words if "=" not in word], spec

    # Doing ----------------------------------------------------------------------------------------

    def _do_send(self, words: list[str]) -> None:
        name, *payloads = words
        to = None
        if payloads[-1].startswith("to="):
            to = self.world.members[payloads.pop()[3:]]
        self.world.members[name].send([payload.encode() for payload in payloads], to)

    def _do_flood(self, words: list[str]) -> None:
        name, count = words
        self.world.members[name].send([f"{name}{n}".encode() for n in range(int(count))])

    def _do_run(self, words: list[str]) -> None:
        self.world.run(float(words[0]))

    def _do_settle(self, words: list[str]) -> None:
        self.world.settle()

    def _do_loss(self, words: list[str]) -> None:
        self.world.loss = float(words[0])

    def _do_drop(self, words: list[str]) -> None:
        conditions = dict(word.split("=", 1) for word in words)
        name = conditions.pop("as", "rule")
        self._rules[name] = self.world.drop(_rule(conditions))

    def _do_remove(self, words: list[str]) -> None:
        for name in words:
            self._rules.pop(name).remove()

    def _do_partition(self, words: list[str]) -> None:
        sides = [side.split() for side in " ".join(words).split("|")]
        self.world.partition(*sides)

    def _do_heal(self, words: list[str]) -> None:
        self.world.heal()

    def _do_crash(self, words: list[str]) -> None:
        self._each(words, Member.crash)

    def _do_pause(self, words: list[str]) -> None:
        self._each(words, Member.pause)

    def _do_resume(self, words: list[str]) -> None:
        self._each(words, Member.resume)

    def _do_leave(self, words: list[str]) -> None:
        self._each(words, Member.leave)

    def _do_restart(self, words: list[str]) -> None:
        self._each(words, Member.restart)

    def _do_busy(self, words: list[str]) -> None:
        self._each(words, Member.busy)

    def _do_idle(self, words: list[str]) -> None:
        self._each(words, Member.idle)

    def _each(self, words: list[str], verb: Callable[[Member], None]) -> None:
        for member in self._members(words):
            verb(member)

    # Looking --------------------------------------------------------------------------------------

    def _do_delivered(self, words: list[str]) -> None:
        for member in self._members(words):
            payloads = b" ".join(message.payload for message in member.delivered).decode()
            self._print(f"{member.name} was given: {payloads}")

    def _do_marks(self, words: list[str]) -> None:
        for member in self._members(words):
            sent = member.probe.multicast.sent
            state = ", blocked" if member.blocked else ""
            marks = f"low {sent.low}, delivered {sent.delivered}, high {sent.high}"
            self._print(f"{member.name} as a sender: {marks}{state}")

    def _do_check(self, words: list[str]) -> None:
        violations = self.world.check()
        for violation in violations:
            self._print(str(violation))
        if not violations:
            self._print("all guarantees held")


def _with(spec: StackSpec, name: str, value: object) -> StackSpec:
    """The stack with one setting changed, named NakAck4.capacity or, if that is clear, capacity."""
    protocol, _, setting = name.rpartition(".")
    if not protocol:
        return spec.replace(**{setting: value})
    part = spec[protocol]
    return spec.replace(type(part)(**{**part.values(), setting: value}))


def _value(text: str) -> object:
    """A setting as its type: true, 10, 0.5 or a word."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _rule(conditions: dict[str, str]) -> Rule:
    """A drop rule: all conditions hold. times=N ends it after N frames."""
    times = int(conditions.pop("times", "0")) or None
    unknown = set(conditions) - {"kind", "source", "target", "seqno"}
    if unknown:
        raise ConfigError(f"a rule has no condition {min(unknown)}")
    seqno = int(conditions.pop("seqno", "-1"))
    left = [times]

    def matches(frame: FrameInFlight) -> bool:
        if any(getattr(frame, name) != value for name, value in conditions.items()):
            return False
        if (seqno >= 0 and seqno not in frame.seqnos) or left[0] == 0:
            return False
        left[0] = None if left[0] is None else left[0] - 1
        return True

    return matches
