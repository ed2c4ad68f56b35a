"""Why a group does not form: what is between this machine and the others, looked at in turn.

Everything is tried with the code that a member uses, and nothing is changed: nothing is joined, and
the process that is asked only answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ringcast.closed.keys import Keys
from ringcast.control.discovery import Discovery
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.frames import Present
from ringcast.errors import ConfigError, RemoteError, Sealed, Unsealed, WrongKey
from ringcast.layers.wire import Wire
from ringcast.runtime.doctor.dns_and_directory import examine_directory, examine_name
from ringcast.runtime.doctor.findings import DoctorFinding, ok, problem, warning
from ringcast.runtime.doctor.probe import DiscoveryProbe, ask_repeatedly
from ringcast.runtime.doctor.seeds import Inquiry, SeedAnswer, ask_seeds
from ringcast.runtime.net.endpoints import is_local
from ringcast.runtime.net.interfaces import (
    Interface,
    Route,
    interfaces,
    kernel_limit,
    route_to,
    routes,
)
from ringcast.runtime.net.registry import capabilities_of
from ringcast.spec import StackSpec
from ringcast.transports import Tcp, Udp

OFFERS = (
    ("segmentation", "segmentation offload"),
    ("coalescing", "receive offload"),
    ("dont_fragment", '"don\'t fragment"'),
)
TIMEOUT = 3.0
"""Seconds to listen: as long as a coordinator's longest pause between its own questions."""


def diagnose(
    spec: StackSpec, group: str | None, timeout: float = TIMEOUT, keys: Keys = ()
) -> Iterator[DoctorFinding]:
    """Each finding as it is made; without a group's name, its members are not looked for."""
    transport = spec["transport"] if "transport" in spec else None  # noqa: SIM401
    if transport is None or not capabilities_of(transport).is_networked:
        yield ok("transport", "the stack uses no network: there is nothing to examine")
    elif isinstance(transport, Tcp | Udp):
        discovery = spec["Discovery"]
        assert isinstance(discovery, Discovery)
        wire = spec["wire"]
        mtu = wire.mtu if isinstance(wire, Wire) else 0
        yield from _Examination(transport, discovery, group, timeout, keys, mtu).findings()
    else:
        name = type(transport).__name__
        yield warning("transport", f"{name} cannot be examined: only Udp and Tcp can")


SEALS: dict[type[RemoteError], str] = {
    Sealed: "a closed group is heard: give --key-file if it should be yours",
    Unsealed: "an open group is heard: give its members the key if it should be yours",
    WrongKey: "a closed group is heard that this key does not open: compare the key files",
}
"""What is heard of groups with other keys, and what that means."""


class _Examination:
    """One look at everything; the members found are kept for the last finding."""

    def __init__(
        self,
        transport: Tcp | Udp,
        discovery: Discovery,
        group: str | None,
        timeout: float,
        keys: Keys,
        mtu: int,
    ) -> None:
        self._mtu = mtu
        """The number that the user gave; 0 for none."""
        self._transport = transport
        self._discovery = discovery
        self._group = group
        self._timeout = timeout
        self._keys = keys
        self._own = ""
        """Where the member would be, when that is known beforehand."""
        self._present: list[Present] = []

    def findings(self) -> Iterator[DoctorFinding]:
        """From the near to the far."""
        yield from examine_interfaces(self._transport.bind, interfaces())
        if isinstance(self._transport, Udp) and self._transport.multicast:
            yield from examine_route(self._transport, routes())
        yield self._bind()
        asking = replace(self._transport, port=0)
        try:
            DiscoveryProbe(asking, 0).close()
        except ConfigError:
            return  # Said already: nothing can be asked like that.
        if isinstance(asking, Udp):
            yield from _examine_buffers(asking)
            yield _examine_datagrams(asking, self._mtu)
            if asking.multicast and self._discovery.multicast:
                yield from self._ask_everybody(asking)
        yield from self._ask_seeds(asking)
        yield from self._ask_places(asking)
        yield from examine_members(self._group, self._present)

    def _bind(self) -> DoctorFinding:
        try:
            with DiscoveryProbe(self._transport, 0) as probe:
                endpoint = probe.transport.endpoint
        except ConfigError as error:
            return problem("port", str(error))
        if self._transport.port:
            self._own = endpoint
            return ok("port", f"{endpoint} is free")
        host = endpoint.rpartition(":")[0]
        return ok("port", f"a member would be at {host}, at any free port")

    # Multicast ------------------------------------------------------------------------------------

    def _ask_everybody(self, udp: Udp) -> Iterator[DoctorFinding]:
        """Two strangers: one asks, and both listen, since none hears its own."""
        inquiry = Inquiry(udp, self._group, self._timeout, self._keys)
        with inquiry.probe() as asker, inquiry.probe() as listener:
            ask_repeatedly([asker, listener], lambda: asker.ask(None), self._timeout)
            yield self._echo(udp, asker, listener)
        for version in sorted(asker.other_versions | listener.other_versions):
            text = f"a process at {_where(udp)} speaks another version of the protocol ({version})"
            yield problem("multicast", f"{text}: update one of the two")
        for kind in sorted(asker.refused | listener.refused, key=str):
            if kind in SEALS:
                yield warning("key", f"at {_where(udp)} {SEALS[kind]}")
        self._present += [p for p in asker.present.values() if p.view != NO_VIEW]
        others = asker.other_groups | listener.other_groups
        if others:
            yield self._other_groups(udp, len(others))

    def _echo(self, udp: Udp, asker: DiscoveryProbe, listener: DiscoveryProbe) -> DoctorFinding:
        if asker.me in listener.askers:
            return ok("multicast", f"what is sent to {_where(udp)} is heard on this machine")
        reasons = [name.rpartition("_")[2] for name in asker.counted("dropped_send")]
        if reasons:
            return problem(
                "multicast",
                f"nothing can be sent to {_where(udp)} ({', '.join(reasons)}): name an interface"
                " with --bind, add a route for 224.0.0.0/4, or use --preset tcp",
            )
        return problem(
            "multicast",
            f"what is sent to {_where(udp)} is not heard on this machine: let UDP port"
            f" {udp.multicast_port} through the firewall, or use --preset tcp",
        )

    def _other_groups(self, udp: Udp, count: int) -> DoctorFinding:
        if self._group is None:
            return ok("multicast", f"{count} members are heard; --group looks for those of one")
        return warning(
            "multicast",
            f"{count} members of other groups are heard at {_where(udp)}: they cost time, and"
            " another multicast_port keeps them away; check the group's name if it should be yours",
        )

    # Seeds ----------------------------------------------------------------------------------------

    def _ask_seeds(self, asking: Tcp | Udp) -> Iterator[DoctorFinding]:
        discovery, seeds = self._discovery, self._discovery.seeds
        if not any((seeds, discovery.multicast, discovery.dns, discovery.file)):
            text = "no seeds are given, so a member founds a group of its own: give --seeds to join"
            yield warning("seed", text)
        for seed in seeds:
            if seed == self._own:
                yield ok("seed", f"{seed} is this member itself: the group can begin here")
        inquiry = Inquiry(asking, self._group, self._timeout, self._keys)
        answers = ask_seeds([seed for seed in seeds if seed != self._own], inquiry)
        yield from self._heard(answers)

    def _ask_places(self, asking: Tcp | Udp) -> Iterator[DoctorFinding]:
        """The name and the directory, where the stack has them."""
        discovery, inquiry = (
            self._discovery,
            Inquiry(asking, self._group, self._timeout, self._keys),
        )
        if discovery.dns:
            yield from self._heard(examine_name(discovery.dns, self._own, inquiry))
        if discovery.file:
            answers = examine_directory(discovery.file, self._own, discovery.refresh, inquiry)
            yield from self._heard(answers)

    def _heard(self, answers: Iterable[SeedAnswer]) -> Iterator[DoctorFinding]:
        for answer in answers:
            if answer.present is not None and answer.present.view != NO_VIEW:
                self._present.append(answer.present)
            yield answer.finding


# One thing at a time ------------------------------------------------------------------------------


def examine_interfaces(bind: str, found: Sequence[Interface]) -> Iterator[DoctorFinding]:
    """Which interfaces there are, and whether the chosen one will do."""
    for interface in found:
        is_chosen = bind == interface.name or bind in interface.addresses
        if interface.is_up and interface.addresses:
            lacks = (
                "" if interface.has_multicast or interface.is_loopback else ", without multicast"
            )
            where = ", ".join(interface.addresses)
            yield ok("interface", f"{interface.name} is up at {where}{lacks}")
        elif is_chosen:
            do = f"run `ip link set {interface.name} up`, and give it an address"
            yield problem("interface", f"{interface.name} is down or has no address: {do}")
    if is_local(bind):
        others = [i for i in found if i.is_up and i.addresses and not i.is_loopback]
        hint = f": for others give --bind {others[0].addresses[0]}" if others else ""
        yield ok("interface", f"{bind} is for members on this machine only{hint}")


def examine_route(udp: Udp, known: Sequence[Route]) -> Iterator[DoctorFinding]:
    """Whether multicast has a way out; an interface that is named needs no route."""
    if ":" in udp.multicast:
        return
    route = route_to(udp.multicast, known)
    if udp.bind:
        yield ok("route", f"{udp.multicast} goes out at {udp.bind}, whatever the routes are")
    elif route is not None:
        yield ok("route", f"{udp.multicast} goes out at {route.interface}")
    else:
        yield problem(
            "route",
            f"there is no route to {udp.multicast}: name an interface with --bind, or run"
            " `ip route add 224.0.0.0/4 dev NAME` with its name",
        )


def _examine_buffers(udp: Udp) -> Iterator[DoctorFinding]:
    with DiscoveryProbe(udp, 0) as probe:
        received = probe.transport.stats()["receive_buffer"]
    yield examine_buffer("receive", "net.core.rmem_max", udp.buffer, received, "are lost")
    sent = kernel_limit("net.core.wmem_max")
    if sent is not None:
        yield examine_buffer("send", "net.core.wmem_max", udp.buffer, sent, "wait")


def _examine_datagrams(udp: Udp, given: int) -> DoctorFinding:
    with DiscoveryProbe(udp, 0) as probe:
        probe.transport.forbid_fragments()
        return examine_datagrams(probe.transport.mtu, given, probe.transport.offers())


def examine_datagrams(fitting: int, given: int, offers: Mapping[str, bool]) -> DoctorFinding:
    """How large a member's datagrams are, why, and what the kernel does with them."""
    has = ", ".join(f"{text}: {'yes' if offers.get(name) else 'no'}" for name, text in OFFERS)
    if given > fitting:
        return warning(
            "datagrams",
            f"Wire.mtu is {given:,}, and {fitting:,} bytes fit a packet of the interface: a lost"
            f" packet loses a whole datagram; give 0 to fit the packets ({has})",
        )
    why = "the number that was given" if given else "what fits a packet of the interface"
    return ok("datagrams", f"they have up to {given or fitting:,} bytes, {why} ({has})")


def examine_buffer(which: str, limit: str, wanted: int, got: int, effect: str) -> DoctorFinding:
    """Whether the kernel gives the socket buffer that the stack asks for, and what follows."""
    if got >= wanted:
        return ok("buffers", f"the {which} buffer has the {wanted:,} bytes that the stack asks for")
    return warning(
        "buffers",
        f"the kernel gives {got:,} of {wanted:,} bytes of {which} buffer, so large bursts {effect}:"
        f" run `sysctl -w {limit}={wanted}`",
    )


def examine_members(group: str | None, found: Sequence[Present]) -> Iterator[DoctorFinding]:
    """Who is in the group, as far as answers say."""
    if group is None:
        yield ok("members", "give the name of a group to look for its members")
        return
    parts = {present.coordinator.address: present for present in found}
    if not parts:
        yield warning(
            "members",
            f'no member of "{group}" was found: start one; if one runs, check that the name, the'
            " stack and the network are the same",
        )
    elif len(parts) == 1:
        (present,) = parts.values()
        who = f"{present.coordinator.name} at {present.coordinator.endpoint}"
        yield ok("members", f'"{group}" is there: view {present.view.number}, made by {who}')
    else:
        who = " and ".join(
            f"{present.coordinator.name} at {present.coordinator.endpoint}"
            for present in parts.values()
        )
        yield warning(
            "members",
            f'"{group}" is in {len(parts)} parts, of {who}: they become one when these reach each'
            " other; if they stay apart, look for a firewall between them",
        )


def _where(udp: Udp) -> str:
    return f"{udp.multicast}:{udp.multicast_port}"
