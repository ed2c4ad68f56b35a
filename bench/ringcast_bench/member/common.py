"""What all members of a benchmark have in common: their stack, and waiting for each other."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ringcast import StackSpec, presets
from ringcast.closed.keys import KEY_SIZE
from ringcast.core.model.address import Address
from ringcast.core.model.view import View
from ringcast.runtime.api.base import GroupBase
from ringcast_bench.job import WAIT, BenchFailure, Job, Report
from ringcast_bench.messages import Check

POLL = 0.002
"""Seconds between two looks at the view."""


def name_of(job: Job) -> str:
    """What a member is called."""
    return f"{job.role}-{job.index}"


def stack_of(job: Job, first: Report) -> StackSpec:
    """The stack of the job; where there is no multicast, process 0 is the seed of the others."""
    stack = StackSpec.from_toml(job.spec) if job.spec else presets.loopback()
    if "Tcp" in stack and job.index:
        return stack.replace("Discovery", seeds=(str(first["endpoint"]),), when_alone="auto")
    return stack


def key_of(job: Job) -> bytes | None:
    """The key of a closed group; any one will do, since nobody is to be kept out."""
    return bytes(KEY_SIZE) if job.closed else None


def wait_for_view(group: GroupBase, members: int) -> View:
    """Wait until the view has this many members."""
    until = time.monotonic() + WAIT
    while len(group.view.members) < members:
        if time.monotonic() >= until:
            raise BenchFailure(f"{len(group.view.members)} of {members} members came")
        time.sleep(POLL)
    return group.view


def address_of(view: View, name: str) -> Address:
    """Who a member is."""
    return next(peer.address for peer in view.peers if peer.name == name)


def summary(checks: Mapping[Address, Check]) -> Report:
    """What came of all senders."""
    return {
        "count": sum(check.count for check in checks.values()),
        "ended": max(check.ended for check in checks.values()),
    }


def suspected_in(stats: object) -> int:
    """The number of members that a member suspects, from its `stats()`."""
    if not isinstance(stats, dict):
        return 0
    here = stats.get("suspected", ())
    return len(here) + sum(map(suspected_in, stats.values()))
