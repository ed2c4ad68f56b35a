"""Never two majorities: the views that majorities have agreed on are one chain.

Each of them has a majority of the one before it, in the order of their ids. Groups that began apart
have chains of their own.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from itertools import pairwise

from ringcast.core.model.address import Address
from ringcast.core.model.view import NO_VIEW, ViewId
from ringcast.core.wire.frames import AgreedView
from ringcast.layers.majority import MajorityLayer, has_majority


class Majorities:
    """The views that members say a majority has agreed on."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._chain_of: dict[ViewId, ViewId] = {}
        """Per agreed view: the first of its chain."""
        self._chains: dict[ViewId, list[AgreedView]] = {}
        self._left: set[Address] = set()

    def look(self, name: str, layer: MajorityLayer) -> None:
        """A member has taken a step."""
        self._left |= layer.left | layer.uncounted
        agreed = layer.agreed
        if not layer.has_quorum or agreed.id in self._chain_of:
            return
        before = layer.before.id
        chain = agreed.id if before == NO_VIEW else self._chain_of.get(before, before)
        self._chain_of[agreed.id] = chain
        views = self._chains.setdefault(chain, [])
        insort(views, agreed, key=lambda view: view.id)
        place = views.index(agreed)
        for earlier, later in pairwise(views[max(0, place - 1) : place + 2]):
            if not has_majority(later.members, earlier.members, self._left):
                self._report(name, f"two majorities: {earlier.id} and {later.id}")
