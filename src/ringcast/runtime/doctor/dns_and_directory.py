"""Would members meet by a name in DNS, or in a shared directory? What is there, and who answers."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ringcast.runtime.discovery.directory_discovery import STALE_AFTER, Notice, read_notices
from ringcast.runtime.discovery.dns_discovery import look_up
from ringcast.runtime.doctor.findings import DoctorFinding, Severity, ok, problem, warning
from ringcast.runtime.doctor.seeds import Inquiry, SeedAnswer, ask_seeds
from ringcast.runtime.net.endpoints import split_endpoint

NAME, FILE = "dns", "file"
SHOWN_MAX = 8
"""How many addresses are named."""


def examine_name(name: str, own: str, inquiry: Inquiry) -> Iterator[SeedAnswer]:
    """What a name stands for, and who is there. `own` is where the member would be, if known."""
    host, port = split_endpoint(name)
    family = socket.AF_INET6 if ":" in inquiry.transport.bind else socket.AF_INET
    places, why = look_up(name, family)
    if why:
        text = f"{host}: {why}: check the name, and that the service publishes its members"
        yield SeedAnswer(problem(NAME, text))
        return
    shown = ", ".join(places[:SHOWN_MAX]) + (", …" if len(places) > SHOWN_MAX else "")
    yield SeedAnswer(ok(NAME, f"{host} has {_count(len(places), 'address', 'addresses')}: {shown}"))
    if own in places:
        yield SeedAnswer(ok(NAME, f"{own} is this member itself: the group can begin here"))
    elif own:
        text = f"this member, at {own}, is not among them, and waits until one of them answers"
        yield SeedAnswer(
            warning(NAME, f"{text}: check --bind, and that all members use port {port}")
        )
    answers = ask_seeds([place for place in places if place != own], inquiry)
    yield from _under_topic(answers, NAME, is_soft=own in places)


def examine_directory(
    directory: str, own: str, refresh: float, inquiry: Inquiry
) -> Iterator[SeedAnswer]:
    """Whether the directory can be used, whose notices are there, and who of them answers."""
    try:
        notices = read_notices(directory)
    except FileNotFoundError:
        yield SeedAnswer(_examine_parent(Path(directory)))
        return
    except OSError as error:
        text = f"{directory} cannot be read ({error.strerror}): name a directory of all members"
        yield SeedAnswer(problem(FILE, text))
        return
    if not os.access(directory, os.W_OK | os.X_OK):
        text = f"nothing can be written to {directory} as this user: let all members write there"
        yield SeedAnswer(problem(FILE, text))
    stale_after = STALE_AFTER * refresh
    kinds = Counter(_kind(notice, inquiry.group, stale_after) for notice in notices)
    told = [_count(count, f"notice {kind}", f"notices {kind}") for kind, count in kinds.items()]
    yield SeedAnswer(ok(FILE, f"{directory} has {', '.join(told) or 'no notices yet'}"))
    living = [n for n in notices if n.group == inquiry.group and n.age <= stale_after]
    targets = [notice.endpoint for notice in living if notice.endpoint != own]
    yield from _under_topic(ask_seeds(targets, inquiry), FILE, is_soft=True)


def _kind(notice: Notice, group: str | None, stale_after: float) -> str:
    if notice.age > stale_after:
        return "of members that are gone"
    if group is None or notice.group == group:
        return "of members"
    return "of other groups"


def _examine_parent(directory: Path) -> DoctorFinding:
    parent = next((place for place in directory.absolute().parents if place.exists()), Path("/"))
    if os.access(parent, os.W_OK | os.X_OK):
        return ok(FILE, f"{directory} does not exist yet: the first member makes it")
    text = f"{directory} does not exist, and {parent} cannot be written to as this user"
    return problem(FILE, f"{text}: make it, and let all members write there")


def _under_topic(answers: Iterable[SeedAnswer], topic: str, is_soft: bool) -> Iterator[SeedAnswer]:
    """The answers under their topic; soft: the group can begin without those who do not answer."""
    for answer in answers:
        finding = replace(answer.finding, topic=topic)
        if is_soft and finding.verdict is Severity.PROBLEM:
            finding = replace(finding, verdict=Severity.WARNING)
        yield replace(answer, finding=finding)


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
