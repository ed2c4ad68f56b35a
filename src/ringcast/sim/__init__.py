"""The simulator: real stacks in virtual time, from a seed, with faults, every guarantee checked."""

from ringcast.sim.checks import Violation
from ringcast.sim.faults import Drop, Sighting
from ringcast.sim.member import Member, State
from ringcast.sim.network import Link
from ringcast.sim.show import Show
from ringcast.sim.trial import Fault, Outcome, Trial
from ringcast.sim.world import World

__all__ = [
    "Drop",
    "Fault",
    "Link",
    "Member",
    "Outcome",
    "Show",
    "Sighting",
    "State",
    "Trial",
    "Violation",
    "World",
]
