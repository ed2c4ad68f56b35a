"""Members of the view that no longer take part in it, and why: suspected, in another view, or
evicted."""

from __future__ import annotations

from collections.abc import Iterable

from ringcast.core.model.address import Address
from ringcast.core.model.view import View


class Departures:
    """What is known of members that the next view will not have, this member included."""

    def __init__(self) -> None:
        self.suspects: set[Address] = set()
        """Members that do not answer; one that is heard again is removed."""
        self.elsewhere: set[Address] = set()
        """Members of this view that are known to be in another one."""
        self.evicted: dict[Address, str] = {}
        """Members that the next view will be without, although they are alive, and why."""
        self.reasons: dict[Address, str] = {}
        """The same for the change that made this view, to tell members that have not heard."""
        self.expelled = ""
        """Why this member's next view is a smaller one; the application is told."""
        self._why = ""
        """Why this member is evicted, if a member of its view said so."""

    @property
    def absent(self) -> set[Address]:
        """Members that do not take part in this view any more."""
        return self.suspects | self.elsewhere | self.evicted.keys()

    def suspect(self, member: Address, suspected: bool) -> None:
        """A member is suspected, or no longer."""
        if suspected:
            self.suspects.add(member)
        else:
            self.suspects.discard(member)

    def told_why(self, reason: str) -> None:
        """The others are about to go on without this member, for this reason."""
        self._why = f"evicted: {reason}"

    def note_elsewhere(self, view: View, members: Iterable[Address]) -> list[Address]:
        """Members are in another view; returns those of which that is new.

        When half of the view is, this member counts as expelled."""
        news = [member for member in members if member in view and member not in self.elsewhere]
        self.elsewhere.update(news)
        if 2 * len(self.elsewhere) >= len(view):
            self.expelled = self._why or "the others went on without this member"
        return news

    def start_view(self, view: View, together: frozenset[Address]) -> bool:
        """Forget what a new view has settled; returns whether this member was evicted."""
        is_evicted = bool(self._why and self.expelled)
        self.suspects = {m for m in self.suspects if m in view and m in together}
        self.reasons = {m: why for m, why in self.evicted.items() if m not in view}
        self.elsewhere, self.evicted, self._why = set(), {}, ""
        assert self.suspects.isdisjoint(self.reasons), "a member that is in the view and evicted"
        return is_evicted

    def take_expelled(self) -> str:
        """Why this member was expelled, once; empty if it was not."""
        reason, self.expelled = self.expelled, ""
        return reason
