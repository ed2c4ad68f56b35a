"""Are the seeds there, and who are they? Each address of each seed is asked by itself."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from ringcast.closed.keys import Keys
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import group_id
from ringcast.core.wire.frames import Present
from ringcast.runtime.doctor.findings import DoctorFinding, Severity, ok, problem, warning
from ringcast.runtime.doctor.probe import DiscoveryProbe, ask_repeatedly
from ringcast.runtime.net.endpoints import ADDRESSES_MAX, is_local, join_endpoint, split_endpoint
from ringcast.runtime.net.registry import capabilities_of
from ringcast.transports import Tcp, Udp

TOPIC = "seed"
PARALLEL = 8
"""Seeds that are asked at a time."""

_STRANGERS = {
    "dropped_wrong_group": "is in another group: check the name of the group, and the port",
    "dropped_wrong_key": "has another key: compare the key files",
    "dropped_unsealed": "is in an open group: leave --key-file out, or give its members the key",
    "dropped_sealed": "is in a closed group: give --key-file",
    "dropped_wrong_version": "speaks another version of the protocol: update one of the two",
    "dropped_no_tls": "does not speak TLS: leave Tcp.tls_certificate out, or give it one",
    "dropped_tls": "speaks TLS: give Tcp.tls_certificate and Tcp.tls_authority",
    "dropped_wrong_certificate": "has no certificate of the authority in Tcp.tls_authority",
    "refused_by_peer": "refuses the certificate in Tcp.tls_certificate: use one of its authority",
    "dropped_no_hello": "is not a member of a group: check the port",
}
"""What a connection ended with, and what that means."""


@dataclass(frozen=True)
class SeedAnswer:
    """What was found out about one address."""

    finding: DoctorFinding
    present: Present | None = None


@dataclass(frozen=True)
class Inquiry:
    """How seeds are asked."""

    transport: Tcp | Udp
    """Bound as the member would be, to any port."""
    group: str | None
    """None when it is not known: then a member of any group will do."""
    timeout: float
    keys: Keys = ()
    """Of a closed group."""

    def probe(self) -> DiscoveryProbe:
        """A stranger that asks for the group."""
        return DiscoveryProbe(self.transport, self.group_id, self.group or "", self.keys)

    @property
    def group_id(self) -> int:
        """The number of the group on the wire; of none, if it is not known."""
        return group_id("" if self.group is None else self.group)


def ask_seeds(seeds: Sequence[str], inquiry: Inquiry) -> list[SeedAnswer]:
    """Ask all of them. When one has answered, the others are no more than a warning."""
    answers: list[SeedAnswer] = []
    targets: list[str] = []
    for seed in seeds:
        found = resolve(seed, _family(inquiry.transport))
        if isinstance(found, DoctorFinding):
            answers.append(SeedAnswer(found))
        else:
            targets.extend(found)
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers.extend(pool.map(lambda target: _ask(target, inquiry), dict.fromkeys(targets)))
    if any(answer.present is not None for answer in answers):
        return list(_softened(answers))
    return answers


def _softened(answers: Sequence[SeedAnswer]) -> Iterator[SeedAnswer]:
    """One seed that answers is enough."""
    for answer in answers:
        is_problem = answer.finding.verdict is Severity.PROBLEM
        finding = answer.finding
        yield replace(answer, finding=warning(TOPIC, finding.text)) if is_problem else answer


def resolve(seed: str, family: socket.AddressFamily) -> list[str] | DoctorFinding:
    """The endpoints that a seed stands for; or what is wrong with its name."""
    host, port = split_endpoint(seed)
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    except UnicodeError:
        return problem(TOPIC, f"{host} cannot be the name of a host: check it")
    except OSError as error:
        return problem(TOPIC, f"the name {host} is not known here ({error.strerror}): check it")
    return [join_endpoint(str(entry[4][0]), port) for entry in found[:ADDRESSES_MAX]]


def _family(transport: Tcp | Udp) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in transport.bind else socket.AF_INET


def _ask(target: str, inquiry: Inquiry) -> SeedAnswer:
    if is_local(inquiry.transport.bind) and not is_local(split_endpoint(target)[0]):
        return SeedAnswer(
            problem(
                TOPIC,
                f"{target} is elsewhere, and cannot reach {inquiry.transport.bind}, which this"
                " member is bound to: give --bind and this machine's address",
            )
        )
    ask = _ask_stream if capabilities_of(inquiry.transport).is_stream else _ask_datagrams
    return ask(target, inquiry)


# TCP ----------------------------------------------------------------------------------------------


def _ask_stream(target: str, inquiry: Inquiry) -> SeedAnswer:
    try:
        socket.create_connection(split_endpoint(target), inquiry.timeout).close()
    except ConnectionRefusedError:
        return _nobody(target)
    except OSError as error:
        return _unreachable(target, error.strerror or "no answer")
    with inquiry.probe() as probe:
        strangers = set[str]()

        def is_done() -> bool:
            strangers.update(probe.counted("dropped_"), probe.counted("refused_"))
            return bool(probe.present) or not strangers.isdisjoint(_STRANGERS)

        ask_repeatedly([probe], lambda: probe.ask(target), inquiry.timeout, is_done)
    if probe.present:
        return _answered(target, probe, inquiry)
    if inquiry.group is None and "dropped_wrong_group" in strangers:
        text = f"a member answers at {target}; with --group it is asked for its group"
        return SeedAnswer(ok(TOPIC, text))
    for name, meaning in _STRANGERS.items():
        if name in strangers:
            return SeedAnswer(problem(TOPIC, f"{target} {meaning}"))
    return SeedAnswer(problem(TOPIC, f"{target} {_wordless(probe, inquiry)}"))


def _wordless(probe: DiscoveryProbe, inquiry: Inquiry) -> str:
    """What it means that connections are taken, and nothing is said."""
    if not (probe.counted("closed_by_peer") or probe.counted("ended_econnreset")):
        return "takes connections and says nothing: it is stopped, or no member of a group"
    if inquiry.keys:
        about = "it has another key or none (compare the key files)"
    else:
        about = "it is in a closed group (give --key-file) or speaks TLS (give Tcp.tls_certificate)"
    return f"ends connections without a word: {about}, or belongs to no group"


# UDP ----------------------------------------------------------------------------------------------


def _ask_datagrams(target: str, inquiry: Inquiry) -> SeedAnswer:
    """Refusals come back only to a socket that is connected, so one of those asks besides."""
    with (
        inquiry.probe() as probe,
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

        ask_repeatedly([probe], ask, inquiry.timeout, is_done)
        if probe.present:
            return _answered(target, probe, inquiry)
        if errno.ECONNREFUSED in codes:
            return _nobody(target)
        if codes:
            return _unreachable(target, os.strerror(codes[0]))
    return SeedAnswer(_silent(target, inquiry))


def _silent(target: str, inquiry: Inquiry) -> DoctorFinding:
    if inquiry.group is None:
        return warning(TOPIC, f"{target} says nothing: with --group a member of it would answer")
    return problem(
        TOPIC,
        f'{target} does not answer: it is in another group than "{inquiry.group}" or speaks another'
        f" version, has {'another' if inquiry.keys else 'a'} key, is stopped, or a firewall drops"
        " UDP",
    )


# What both say ------------------------------------------------------------------------------------


def _answered(target: str, probe: DiscoveryProbe, inquiry: Inquiry) -> SeedAnswer:
    present = next(iter(probe.present.values()))
    name = present.peer.name
    if present.view == NO_VIEW:
        text = (
            f"{target} answers, and {name} looks for the group as well: start one member without"
            " seeds, or with itself among them"
        )
        return SeedAnswer(warning(TOPIC, text), present)
    text = f'{target} answers: {name}, in view {present.view.number} of "{inquiry.group}"'
    return SeedAnswer(ok(TOPIC, text), present)


def _nobody(target: str) -> SeedAnswer:
    port = split_endpoint(target)[1]
    text = f"no process listens at {target}"
    text += f": start a member there with --port {port}, or check the port"
    return SeedAnswer(problem(TOPIC, text))


def _unreachable(target: str, reason: str) -> SeedAnswer:
    text = f"{target} cannot be reached ({reason}): check the address, the route and the firewall"
    return SeedAnswer(problem(TOPIC, text))
