"""Are the seeds there, and who are they? Each address of each seed is asked by itself."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from ringcast.core.codec import group_id
from ringcast.core.frames import Present
from ringcast.core.view import NO_VIEW
from ringcast.runtime.endpoints import ADDRESSES_MAX, is_local, join_endpoint, split_endpoint
from ringcast.runtime.findings import Finding, Verdict, ok, problem, warning
from ringcast.runtime.probe import Probe, ask_around
from ringcast.transports import Tcp, Udp

TOPIC = "seed"
PARALLEL = 8
"""Seeds that are asked at a time."""

_STRANGERS = {
    "dropped_wrong_group": "is in another group: check the name of the group, and the port",
    "dropped_wrong_version": "speaks another version of the protocol: update one of the two",
    "dropped_no_hello": "is no member of a group: check the port",
}
"""What a connection ended with, and what that means."""


@dataclass(frozen=True)
class Answer:
    """What was found out about one address."""

    finding: Finding
    present: Present | None = None


@dataclass(frozen=True)
class Inquiry:
    """How seeds are asked."""

    transport: Tcp | Udp
    """Bound as the member would be, to any port."""
    group: str | None
    """None when it is not known: then a member of any group will do."""
    timeout: float

    @property
    def group_id(self) -> int:
        """The number of the group on the wire; of none, if it is not known."""
        return group_id("" if self.group is None else self.group)


def ask_seeds(seeds: Sequence[str], inquiry: Inquiry) -> list[Answer]:
    """Ask all of them. When one has answered, the others are no more than a warning."""
    answers: list[Answer] = []
    targets: list[str] = []
    for seed in seeds:
        found = resolve(seed, _family(inquiry.transport))
        if isinstance(found, Finding):
            answers.append(Answer(found))
        else:
            targets.extend(found)
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers.extend(pool.map(lambda target: _ask(target, inquiry), dict.fromkeys(targets)))
    if any(answer.present is not None for answer in answers):
        return list(_softened(answers))
    return answers


def _softened(answers: Sequence[Answer]) -> Iterator[Answer]:
    """One seed that answers is enough."""
    for answer in answers:
        is_problem = answer.finding.verdict is Verdict.PROBLEM
        finding = answer.finding
        yield replace(answer, finding=warning(TOPIC, finding.text)) if is_problem else answer


def resolve(seed: str, family: socket.AddressFamily) -> list[str] | Finding:
    """The endpoints that a seed stands for; or what is wrong with its name."""
    host, port = split_endpoint(seed)
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    except UnicodeError:
        return problem(TOPIC, f"{host} can be no name of a host: check it")
    except OSError as error:
        return problem(TOPIC, f"the name {host} is not known here ({error.strerror}): check it")
    return [join_endpoint(str(entry[4][0]), port) for entry in found[:ADDRESSES_MAX]]


def _family(transport: Tcp | Udp) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in transport.bind else socket.AF_INET


def _ask(target: str, inquiry: Inquiry) -> Answer:
    if is_local(inquiry.transport.bind) and not is_local(split_endpoint(target)[0]):
        return Answer(
            problem(
                TOPIC,
                f"{target} is elsewhere, and cannot reach {inquiry.transport.bind}, which this"
                " member is bound to: give --bind and this machine's address",
            )
        )
    ask = _ask_tcp if isinstance(inquiry.transport, Tcp) else _ask_udp
    return ask(target, inquiry)


# TCP ----------------------------------------------------------------------------------------------


def _ask_tcp(target: str, inquiry: Inquiry) -> Answer:
    try:
        socket.create_connection(split_endpoint(target), inquiry.timeout).close()
    except ConnectionRefusedError:
        return _nobody(target)
    except OSError as error:
        return _unreachable(target, error.strerror or "no answer")
    with Probe(inquiry.transport, inquiry.group_id) as probe:
        strangers = set[str]()

        def is_done() -> bool:
            strangers.update(probe.counted("dropped_"))
            return bool(probe.present) or not strangers.isdisjoint(_STRANGERS)

        ask_around([probe], lambda: probe.ask(target), inquiry.timeout, is_done)
    if probe.present:
        return _answered(target, probe, inquiry)
    if inquiry.group is None and "dropped_wrong_group" in strangers:
        text = f"a member answers at {target}; with --group it is asked for its group"
        return Answer(ok(TOPIC, text))
    for name, meaning in _STRANGERS.items():
        if name in strangers:
            return Answer(problem(TOPIC, f"{target} {meaning}"))
    text = f"{target} takes connections and says nothing: it is stopped, or no member of a group"
    return Answer(problem(TOPIC, text))


# UDP ----------------------------------------------------------------------------------------------


def _ask_udp(target: str, inquiry: Inquiry) -> Answer:
    """Refusals come back only to a socket that is connected, so one of those asks besides."""
    with (
        Probe(inquiry.transport, inquiry.group_id) as probe,
        closing(socket.socket(_family(inquiry.transport), socket.SOCK_DGRAM)) as refusals,
    ):
        codes: list[int] = []

        def ask() -> None:
            probe.ask(target)
            try:
                refusals.connect(split_endpoint(target))
                refusals.send(probe.question(direct=True))
            except OSError as error:
                codes.append(error.errno or 0)

        def is_done() -> bool:
            code = refusals.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                codes.append(code)
            return bool(probe.present or codes)

        ask_around([probe], ask, inquiry.timeout, is_done)
        if probe.present:
            return _answered(target, probe, inquiry)
        if errno.ECONNREFUSED in codes:
            return _nobody(target)
        if codes:
            return _unreachable(target, os.strerror(codes[0]))
    return Answer(_silent(target, inquiry))


def _silent(target: str, inquiry: Inquiry) -> Finding:
    if inquiry.group is None:
        return warning(TOPIC, f"{target} says nothing: with --group a member of it would answer")
    return problem(
        TOPIC,
        f'{target} does not answer: it is in another group than "{inquiry.group}" or speaks another'
        " version, it is stopped, or a firewall drops UDP",
    )


# What both say ------------------------------------------------------------------------------------


def _answered(target: str, probe: Probe, inquiry: Inquiry) -> Answer:
    present = next(iter(probe.present.values()))
    name = present.peer.name
    if present.view == NO_VIEW:
        text = (
            f"{target} answers, and {name} looks for the group as well: start one member without"
            " seeds, or with itself among them"
        )
        return Answer(warning(TOPIC, text), present)
    text = f'{target} answers: {name}, in view {present.view.number} of "{inquiry.group}"'
    return Answer(ok(TOPIC, text), present)


def _nobody(target: str) -> Answer:
    port = split_endpoint(target)[1]
    text = f"nobody listens at {target}: start a member there with --port {port}, or check the port"
    return Answer(problem(TOPIC, text))


def _unreachable(target: str, reason: str) -> Answer:
    text = f"{target} cannot be reached ({reason}): check the address, the route and the firewall"
    return Answer(problem(TOPIC, text))
