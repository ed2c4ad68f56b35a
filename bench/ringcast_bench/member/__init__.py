"""Ringcast as it is measured: members that send, receive, answer, join or idle, by any API."""

from __future__ import annotations

from ringcast_bench.job import Contestant, Job
from ringcast_bench.member.asynchronous import AsyncMember, AsyncPing
from ringcast_bench.member.ping import Ping
from ringcast_bench.member.still import Former, Idler, JoiningMember
from ringcast_bench.member.stream import Member
from ringcast_bench.member.viewer import Viewer
from ringcast_bench.member.witness import Witness


def make(job: Job) -> Contestant:
    """The member that the job names."""
    is_async = job.api == "async"
    match job.role:
        case "ping" | "pong":
            return AsyncPing(job) if is_async else Ping(job)
        case "idle":
            return Idler(job)
        case "joiner":
            return JoiningMember(job)
        case "form":
            return Former(job)
        case "viewer":
            return Viewer(job)
        case "witness":
            return Witness(job)
    return AsyncMember(job) if is_async else Member(job)
