"""Ringcast as it is measured: members that send, receive, answer, join or idle, by any API."""

from __future__ import annotations

from ringcast.bench.job import Contestant, Job
from ringcast.bench.member.asynchronous import AsyncMember, AsyncPing
from ringcast.bench.member.ping import Ping
from ringcast.bench.member.still import Former, Idler, Joiner
from ringcast.bench.member.stream import Member


def make(job: Job) -> Contestant:
    """The member that the job names."""
    is_async = job.api == "async"
    match job.role:
        case "ping" | "pong":
            return AsyncPing(job) if is_async else Ping(job)
        case "idle":
            return Idler(job)
        case "joiner":
            return Joiner(job)
        case "form":
            return Former(job)
    return AsyncMember(job) if is_async else Member(job)
