"""The time that sends to the group waited for room, by what they waited for.

The lowest layer without room is the cause. Its `block_reason` names the counter, for example
`blocked_ms_window`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringcast.core.stack.env import Env
from ringcast.core.stack.part import Layer


class BlockedTime:
    """The wait of one member's sends to the group."""

    __slots__ = ("_env", "_layers", "_since", "reason")

    def __init__(self, env: Env, ladder: Sequence[Layer]) -> None:
        """ladder: the layers from the top to the bottom; those below the multicast carry nothing
        to the group."""
        self._env = env
        roles = [layer.role_name for layer in ladder]
        end = roles.index("multicast") + 1 if "multicast" in roles else len(ladder)
        self._layers = ladder[end - 1 :: -1]
        self._since = 0.0
        self.reason = ""
        """What sends to the group wait for; empty while they do not wait."""

    def begin(self) -> None:
        """Sends to the group wait from now on, unless they did already."""
        if not self.reason:
            self._since = self._env.now
            blocking = (part for part in self._layers if part.room(None)[0] <= 0)
            layer = next(blocking, None)
            self.reason = (layer.block_reason if layer is not None else "") or "other"

    def end(self) -> None:
        """Something was sent to the group, or no sender waits any more."""
        if self.reason:
            waited = round(1_000 * (self._env.now - self._since))
            self._env.counters[f"blocked_ms_{self.reason}"] += waited
            self.reason = ""
