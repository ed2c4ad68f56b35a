"""The path MTU: which datagrams arrive at every member, found out by probing (RFC 8899, DPLPMTUD).

A member that sends large datagrams asks the others once whether one of that size arrives
(PATH_PROBE, filled up to the size), and again while messages have to be sent again. Members that
answer smaller probes and none of the large ones are behind a path that swallows large datagrams, a
black hole. The smaller ones are not much smaller: a full queue drops both alike. Datagrams then get
the base size at once, so that the group goes on, and a search by halves finds the largest that
arrives. After `raise_after`, and when members have left, larger ones are tried again.

A probe to the group costs one datagram, and one small answer per member. A member that sends
nothing large, or loses nothing, probes no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.core.model.address import Address
from ringcast.core.model.events import DatagramsResized
from ringcast.core.stack.counters import declare
from ringcast.core.stack.datagram_size import BASE_SIZE, SIZE_MIN
from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Installation, Part, Spec
from ringcast.core.stack.ports import Packer, PathWatch, Ports, Sizing
from ringcast.core.stack.registry import protocol
from ringcast.core.wire.frames import Frame, PathProbe, PathReply
from ringcast.errors import ConfigError

CHECK_SECONDS = 1.0
"""How long messages are sent before it is looked whether some had to be sent again."""
CONFIRM_ANSWERS = 4
"""Smaller probes that a member answers, and no large one, before the size in use is given up."""
SEARCH_ANSWERS = 3
"""The same for a size that is only tried."""
ROUNDS_SMALLER, ROUNDS_MAX = 6, 12
"""Probes of one size beside which a smaller one is sent; then a tiny one, since the path may carry
neither. Members that answered none of all say nothing about the size."""
WAIT_FIRST, WAIT_MIN, WAIT_MAX = 0.2, 0.05, 1.0
"""Seconds that a round of probes waits: before the first answer, at the least, at the most. It
doubles while nothing is answered: then the path is slow, or cut."""
WAIT_ROUND_TRIPS = 4
RESUME_SECONDS = 0.5
"""After a new view, larger datagrams are tried again this soon if the size was lowered before."""
STEP = 16
"""A search ends when the largest size that arrives is known to this many bytes."""
COMMON_SIZES = (8_972, 1_472, 1_452)
"""What fits a packet of 9,000 bytes, and of 1,500 with IPv4 and IPv6: tried first."""

declare("path_probes", "datagrams", "Probes of whether a datagram of a size arrives.")
declare("path_lowered", "times", "Times that datagrams became smaller, since they did not arrive.")
declare("path_raised", "times", "Times that datagrams became larger again, since they arrive.")


@protocol(role="path", under="membership", offers=(PathWatch,), shared=False)
@dataclass(frozen=True, kw_only=True)
class PathMtu(Spec):
    """Finds out which datagrams arrive, where `Wire.mtu` is automatic."""

    raise_after: float = 60.0
    """Seconds after which larger datagrams are tried again, where they were lowered. Less finds a
    path that is mended sooner, and costs some probes each time."""

    def __post_init__(self) -> None:
        if self.raise_after <= 0:
            raise ConfigError(f"PathMtu.raise_after is {self.raise_after}: give seconds above 0")

    def build(self, env: Env) -> PathMtuPart:
        """The part with these settings."""
        return PathMtuPart(env, self)


class _Trial:
    """The probes of one size."""

    __slots__ = (
        "arrived",
        "heard",
        "is_answered",
        "needed",
        "numbers",
        "pairs",
        "silent_rounds",
        "size",
    )

    def __init__(self, size: int, needed: int) -> None:
        self.size = size
        self.needed = needed
        """How many smaller probes a member has to answer before the large ones count as lost."""
        self.numbers: dict[int, float] = {}
        """Of the rounds, with the time of each."""
        self.pairs: set[int] = set()
        """The rounds that had a large probe."""
        self.is_answered = False
        """Whether any member has answered a probe since the last round began."""
        self.silent_rounds = 0
        """Rounds since then that no member has answered."""
        self.arrived: set[Address] = set()
        """The members that have answered a large probe."""
        self.heard: dict[Address, set[int]] = {}
        """Per member: the rounds whose smaller probe it has answered."""

    def lost_at(self, members: set[Address]) -> set[Address]:
        """The members that large probes do not arrive at."""
        return {m for m in members if len(self.heard.get(m, ())) >= self.needed}


class PathMtuPart(Part):
    """Probes, and sets the size of datagrams (ports.PathWatch)."""

    kinds = (PathProbe, PathReply)

    def __init__(self, env: Env, spec: PathMtu) -> None:
        super().__init__(env)
        self.spec = spec
        self._others: set[Address] = set()
        self._suspects: set[Address] = set()
        self._confirmed: set[Address] = set()
        """Members at which datagrams of the size in use arrive."""
        self._confirmed_size = 0
        self._trial: _Trial | None = None
        self._search: tuple[int, int] | None = None
        """While a size is searched: one that arrives, and one above it that does not."""
        self._lost: set[Address] = set()
        """The members at which datagrams of the former size did not arrive."""
        self._is_new = False
        """Whether a datagram has left whose size is not confirmed by all members."""
        self._number = 0
        self._wait = WAIT_FIRST
        self._resent = 0
        """How many messages had been sent again when that was looked at last."""
        self._told = env.datagram_size.size

    def connect(self, ports: Ports) -> None:
        self._sizing, self._wire = ports[Sizing], ports[Packer]

    # When to probe -------------------------------------------------------------------------------

    def on_view(self, installation: Installation) -> None:
        self._others = set(installation.view) - {self.env.me}
        self._suspects &= self._others
        self._confirmed &= self._others
        self._end_trial()
        if self._told != self.env.datagram_size.size:
            self._tell()
        if self.env.datagram_size.path is not None:
            self._raise_after(RESUME_SECONDS)
        self._watch()

    def on_suspect(self, member: Address, suspected: bool) -> None:
        if suspected:
            self._suspects.add(member)
        else:
            self._suspects.discard(member)

    @property
    def _reachable(self) -> set[Address]:
        return self._others - self._suspects

    @property
    def _unconfirmed(self) -> set[Address]:
        is_known = self.env.datagram_size.size <= self._confirmed_size
        return self._reachable - self._confirmed if is_known else self._reachable

    def _watch(self) -> None:
        """Look at the next large datagram; nothing is done, and no timer runs, before it leaves."""
        if not self.env.datagram_size.is_given:
            self._wire.watch(self._sent_large)

    def _sent_large(self, nbytes: int) -> None:
        if self._trial is None:
            self._is_new = nbytes > BASE_SIZE and bool(self._unconfirmed)
            pause = 0.0 if self._is_new else CHECK_SECONDS
            self.env.timers.set(self, "check", self.env.now + pause)

    def on_timer(self, name: str) -> None:
        if name == "round":
            self._judge()
        elif self._trial is not None:
            return
        elif name == "raise":
            self._search_up()
        elif self._is_new or self.env.counters["resent"] != self._resent:
            self._resent = self.env.counters["resent"]
            self._try(self.env.datagram_size.size, CONFIRM_ANSWERS)
        else:
            self._watch()

    def _raise_after(self, seconds: float) -> None:
        self.env.timers.set(self, "raise", self.env.now + seconds)

    # Probing -------------------------------------------------------------------------------------

    def _try(self, size: int, needed: int) -> None:
        self._trial = _Trial(size, needed)
        if self._reachable:
            self._probe(self._trial)
        else:
            self._arrives(self._trial)

    def _probe(self, trial: _Trial) -> None:
        self._number += 1
        trial.numbers[self._number] = self.env.now
        rounds = len(trial.numbers)
        if rounds > 1:  # Most probes arrive: a smaller one is not needed to know it.
            smaller = self._search[0] if self._search else _floor(trial.size)
            self.env.out.send(PathProbe(self._number, smaller if rounds <= ROUNDS_SMALLER else 0))
            self.env.counters["path_probes"] += 1
        if not trial.silent_rounds:  # A path that answers nothing is not given more to carry.
            # Behind the smaller one, so that the two are never sent as segments of one buffer.
            self.env.out.send(PathProbe(self._number, trial.size))
            trial.pairs.add(self._number)
            self.env.counters["path_probes"] += 1
        pause = min(self._wait * 2.0**trial.silent_rounds, WAIT_MAX)
        self.env.timers.set(self, "round", self.env.now + pause)

    def on_frame(self, frame: Frame, source: Address) -> None:
        if source not in self._others:
            return
        if isinstance(frame, PathProbe):
            self.env.out.send(PathReply(frame.number, frame.size), source)
        elif isinstance(frame, PathReply) and self._trial is not None:
            self._on_reply(self._trial, frame, source)

    def _on_reply(self, trial: _Trial, frame: PathReply, source: Address) -> None:
        sent = trial.numbers.get(frame.number)
        if sent is None:
            return
        trial.is_answered = True
        pause = min(max(WAIT_ROUND_TRIPS * (self.env.now - sent), WAIT_MIN), WAIT_MAX)
        self._wait = max(pause, (self._wait + pause) / 2)  # A slower path counts at once.
        if frame.size != trial.size:
            if frame.number in trial.pairs:
                trial.heard.setdefault(source, set()).add(frame.number)
            return
        trial.arrived.add(source)
        if self._reachable <= trial.arrived:
            self._arrives(trial)

    def _judge(self) -> None:
        """A round is over."""
        trial = self._trial
        if trial is None:
            return
        waiting = self._reachable - trial.arrived
        lost = trial.lost_at(waiting)
        if lost:
            self._is_lost(trial, lost)
        elif not waiting or len(trial.numbers) >= ROUNDS_MAX:
            self._arrives(trial)
        else:
            trial.silent_rounds = 0 if trial.is_answered else trial.silent_rounds + 1
            trial.is_answered = False
            self._probe(trial)

    def _end_trial(self) -> None:
        self._trial = self._search = None
        self.env.timers.cancel(self, "round")

    # What follows --------------------------------------------------------------------------------

    def _arrives(self, trial: _Trial) -> None:
        """All members that answer at all get datagrams of this size."""
        self._confirmed = trial.arrived & self._others
        self._confirmed_size = trial.size
        if self._search is None:
            self._end_trial()
            self._settled()
            return
        self._search = (trial.size, self._search[1])
        self._sizing.bound_path(trial.size)
        self._go_on()

    def _is_lost(self, trial: _Trial, lost: set[Address]) -> None:
        if self._search is not None:
            self._search = (self._search[0], trial.size)
        else:
            self._lost = lost
            self._search = (_floor(trial.size), trial.size)
            self._sizing.bound_path(self._search[0])
        self._go_on()

    def _search_up(self) -> None:
        size = self.env.datagram_size
        if size.size < size.view:
            self._search = (size.size, size.view + 1)
            self._try(size.view, SEARCH_ANSWERS)

    def _go_on(self) -> None:
        """Try the next size, or use the one that was found."""
        assert self._search is not None
        low, high = self._search
        assert low <= high
        if high - low > STEP:
            common = (size for size in COMMON_SIZES if low < size < high)
            self._try(next(common, (low + high) // 2), SEARCH_ANSWERS)
            return
        self._end_trial()
        is_free = low >= self.env.datagram_size.view
        self._sizing.bound_path(None if is_free else low)
        if self._confirmed_size != low > SIZE_MIN:
            self._try(low, CONFIRM_ANSWERS)
        else:
            self._settled()

    def shrunk(self, size: int) -> None:
        """The kernel refuses datagrams above this size: the interface has a smaller MTU now."""
        self._end_trial()
        self._sizing.bound_path(size, is_refused=True)
        self._settled()

    def _settled(self) -> None:
        if self.env.datagram_size.size != self._told:
            self._tell()
        if self.env.datagram_size.path is not None:
            self._raise_after(self.spec.raise_after)
        self._watch()

    def _tell(self) -> None:
        size, former = self.env.datagram_size, self._told
        self._told = size.size
        if size.source != "view" and size.size < former:
            self.env.counters["path_lowered"] += 1
        elif size.source != "view":
            self.env.counters["path_raised"] += 1
        lost = tuple(sorted(self._lost)) if size.source == "probe" else ()
        if self.env.listener is not None:
            self.env.listener(DatagramsResized(size.size, former, size.source, lost))


def _floor(size: int) -> int:
    """What is used while a size is searched below this one."""
    return BASE_SIZE if size > BASE_SIZE else min(size, SIZE_MIN)
