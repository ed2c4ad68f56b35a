"""The settings of the membership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Spec
from ringcast.core.stack.ports import ViewChanger
from ringcast.core.stack.registry import protocol
from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from ringcast.control.membership.part import MembershipPart


@protocol(role="membership", under="failure", offers=(ViewChanger,), shared=False)
@dataclass(frozen=True, kw_only=True)
class Membership(Spec):
    """How views are made."""

    gather: float = 0.02
    """Seconds that a coordinator waits for more joins, leaves and suspicions, so that they become
    one view."""
    retry: float = 0.05
    """Seconds after which an unanswered question of a view change is asked again; doubles up to
    `retry_max`."""
    retry_max: float = 0.5
    """The longest pause between repeats."""
    change_timeout: float = 10.0
    """Seconds after which a member that cannot get what it needs for a view goes on alone and
    merges back, and after which a change that is not answered begins anew."""
    drain_timeout: float = 5.0
    """Seconds that a leaver waits for others to have all of its messages."""
    leave_timeout: float = 5.0
    """Seconds after which a leaver that gets no answer goes all the same."""

    def __post_init__(self) -> None:
        for name, value in self.values().items():
            if not isinstance(value, float | int) or value <= 0:
                raise ConfigError(f"Membership.{name} is {value}: give seconds above 0")
        if self.retry > self.retry_max:
            raise ConfigError("Membership.retry is above retry_max: give less, or raise retry_max")

    def build(self, env: Env) -> MembershipPart:
        """The part with these settings."""
        # Here, and not above: the part imports its settings.
        from ringcast.control.membership.part import MembershipPart  # noqa: PLC0415

        return MembershipPart(env, self)
