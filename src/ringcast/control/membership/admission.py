"""Admission: what the membership believes of processes that are not in its view.

Any process can send a JOIN, and a view change stops all members. So a joiner first has to show that
datagrams reach it: the answer to its search carries a **cookie**, and only a JOIN that brings it
back is a reason for a view. A cookie is a MAC of the joiner's identity and of the time, under a
secret of the member that gave it out, so nothing is kept about processes that may not exist.

**View numbers** go up by one per view, and a merge continues from the higher one. A number far
above the installed view would leave no room for the views after it: it is dropped, whichever member
or stranger sends it.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import View
from ringcast.core.stack.env import Env
from ringcast.core.wire.frames import Frame, Install, Merge, Prepare, Refused
from ringcast.core.wire.layout import VIEW_NUMBER_MAX

COOKIE_SECONDS = 30.0
"""How long a cookie is given out; it is accepted for as long once more."""
NUMBER_STEP_MAX = 2**32
"""How far above the installed view a number may be: more views than a group has in its life."""
FORMER_MAX = 1_024
"""How many former members are remembered, to be told the view."""


class Admission:
    """Cookies, believable numbers, and the former members of the group."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._base = 0
        self._former: dict[Address, None] = {}

    # Cookies -------------------------------------------------------------------------------------

    def cookie(self, joiner: Peer) -> int:
        """What a joiner has to bring back; never 0."""
        return self._cookie(joiner, self._slot)

    def has_proved(self, joiner: Peer, cookie: int) -> bool:
        """Whether this is the cookie that this member gave the joiner lately."""
        slot = self._slot
        return cookie in (self._cookie(joiner, slot), self._cookie(joiner, slot - 1))

    @cached_property
    def _secret(self) -> bytes:
        return self._env.rng.getrandbits(128).to_bytes(16, "big")

    @property
    def _slot(self) -> int:
        return int(self._env.now // COOKIE_SECONDS) + 1

    def _cookie(self, joiner: Peer, slot: int) -> int:
        told = b"%d %d " % (slot, joiner.address) + joiner.endpoint.encode()
        digest = blake2b(told, digest_size=8, key=self._secret).digest()
        return int.from_bytes(digest, "big") >> 1 or 1

    # Numbers -------------------------------------------------------------------------------------

    @property
    def number_max(self) -> int:
        """The highest number of a view that is believed; a joiner cannot know what is usual."""
        return self._base + NUMBER_STEP_MAX if self._base else VIEW_NUMBER_MAX // 2

    def believes(self, frame: Frame) -> bool:
        """Whether the number that a frame would make this member go up to is one to believe."""
        if isinstance(frame, Prepare | Merge):
            return frame.proposal.number <= self.number_max
        if isinstance(frame, Install):
            return frame.view.id.number <= self.number_max
        return not isinstance(frame, Refused) or frame.promised.number <= self.number_max

    # Former members ------------------------------------------------------------------------------

    def start_view(self, view: View, old: View | None) -> None:
        """A view is installed."""
        self._base = view.id.number
        for member in old or ():
            self._former.pop(member, None)
            self._former[member] = None
        self._former = {member: None for member in self._former if member not in view}
        while len(self._former) > FORMER_MAX:
            del self._former[next(iter(self._former))]
        assert self._env.me not in self._former

    def knows(self, address: Address) -> bool:
        """Whether this was a member of the group, as far as that is remembered."""
        return address in self._former
