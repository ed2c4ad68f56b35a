"""The simulator: real stacks in virtual time, from a seed, with faults, every guarantee checked."""

from ringcast.sim.checks.guarantees import BrokenGuarantee
from ringcast.sim.engine.faults import Drop, FrameInFlight
from ringcast.sim.engine.member import Member, ProcessState
from ringcast.sim.engine.network import Link
from ringcast.sim.engine.world import World
from ringcast.sim.text.show import Show
from ringcast.sim.trial import Fault, Trial, TrialOutcome

__all__ = [
    "BrokenGuarantee",
    "Drop",
    "Fault",
    "FrameInFlight",
    "Link",
    "Member",
    "ProcessState",
    "Show",
    "Trial",
    "TrialOutcome",
    "World",
]
