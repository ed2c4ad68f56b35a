"""UDP: one socket for this member's own traffic, and one that hears the multicast group.

Sends go out by the unicast socket, so a datagram's source is where its sender is reached. Datagrams
are received as `bytes`: small payloads are cut from them, and large ones stay views of them for as
long as the application wants; a buffer that is used again would have to be copied from. Fragments
of large messages are written straight to their place (core.wire.placement).
"""

from __future__ import annotations

import errno
import logging
import select
import socket
from collections import Counter
from collections.abc import Iterator, Sequence

from ringcast.core.model.address import Address, Peer
from ringcast.core.model.batch import Payload
from ringcast.core.wire.outbox import GATHER_SIZE, MTU, TRAIN_MAX, Datagram, Target, without_trains
from ringcast.core.wire.placement import PLACED, Placement
from ringcast.core.wire.segments import Received, Segments
from ringcast.errors import ConfigError
from ringcast.runtime.net.connection import SOURCE
from ringcast.runtime.net.datagram.offload import (
    ANCILLARY_SIZE,
    SEGMENT_SIZE_MAX,
    UNSUPPORTED,
    can_segment,
    coalesce,
    grouped,
    segment_request,
    segment_size,
)
from ringcast.runtime.net.datagram.own_filter import drop_foreign, drop_own, sample_strangers
from ringcast.runtime.net.datagram.path_mtu import datagram_max, forbid_fragments
from ringcast.runtime.net.datagram.places import UdpPlaces
from ringcast.runtime.net.datagram.recvmmsg import SLOTS, ManyReader, has_recvmmsg
from ringcast.runtime.net.endpoints import (
    ELSEWHERE,
    SocketAddress,
    advertised_host,
    bind_host,
    interface_index,
    join_endpoint,
)
from ringcast.runtime.net.socket_options import (
    bind_failed,
    bound_waiting,
    join_group,
    kernel_drops,
    report_errors,
    reported_errors,
    size_buffers,
)
from ringcast.runtime.net.transport import Guard
from ringcast.transports import Udp

DATAGRAM_MAX = 65_536
SMALL = 10_000
"""After a datagram below this size, in bytes, the queue of the socket is likely empty."""
GATHER_MAX = 512
"""The most buffers for one system call; the kernel takes 1,024."""
REPORTED = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EMSGSIZE}
"""Errors that the network reports of a datagram, after it was sent."""

log = logging.getLogger("ringcast.udp")


class UdpTransport:
    """Datagrams over UDP, with or without multicast."""

    deadline = float("inf")

    def __init__(self, spec: Udp) -> None:
        self.spec = spec
        self.counters: Counter[str] = Counter()
        self.hints: list[str] = []
        self.placement = Placement()
        self.endpoint = ""
        self._ready = select.poll()
        self._sockets: list[socket.socket] = []
        self._places = UdpPlaces(self.counters)
        self._everybody: tuple[SocketAddress, ...] = ()
        self._complained: set[int] = set()
        self._is_filtered = False
        self._guard: Guard | None = None
        self._is_strict = False
        """Whether the kernel was asked to drop what is not of the group."""
        self._segments = self._coalesces = False
        """Whether many datagrams of one size leave, and arrive, in one system call."""
        self._many: dict[socket.socket, ManyReader] = {}
        """What reads datagrams of one size that the device has not joined."""
        self.mtu = MTU
        """The largest datagram that fits the packets of the interface, known once it is open."""
        self.shrunk = 0
        self.train_bytes = TRAIN_MAX
        self._has_fragments = True
        """Whether the kernel cuts datagrams that do not fit a packet."""
        self._multicasts = 0
        """Datagrams sent to everybody at once, which come back to this member as well."""

    # Opening --------------------------------------------------------------------------------------

    def secure(self, guard: Guard, /) -> None:
        """Learn nothing from datagrams that may be anybody's."""
        self._guard, self._places.is_closed = guard, True
        if self._is_strict:  # Its keys may have other tags, and the kernel is to know them now.
            self._drop_foreign()

    def open(self, me: Address, group: int) -> None:
        """Bind the sockets. Raises ConfigError with what to change."""
        spec = self.spec
        self._me, self._group = me, group
        reach = spec.multicast or ELSEWHERE[6 if ":" in spec.bind else 4]
        host = bind_host(spec.bind, reach)
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._places.open(self._family)
        try:
            self._unicast = self._bind((host.partition("%")[0], spec.port), shared=False, host=host)
            if spec.multicast:
                self._join_multicast(host, me)
        except BaseException:
            self.close()
            raise
        port = int(self._unicast.getsockname()[1])
        self.endpoint = join_endpoint(spec.advertise or advertised_host(host, reach), port)
        self.counters["receive_buffer"] = size_buffers(self._sockets, spec.buffer)
        bound_waiting(self._unicast)
        report_errors(self._unicast)
        self._path = (host, reach)
        self.mtu = min(MTU, datagram_max(*self._path))
        self._segments = can_segment(self._unicast)
        if self.mtu <= SEGMENT_SIZE_MAX:
            self._coalesces = min(map(coalesce, self._sockets))
        if self._coalesces and has_recvmmsg():
            self._many = {sock: ManyReader() for sock in self._sockets}
        self._by_fd = {sock.fileno(): sock for sock in self._sockets}
        for fd in self._by_fd:
            self._ready.register(fd, select.POLLIN)

    def forbid_fragments(self) -> None:
        """Set "don't fragment": a datagram that is too large for the interface is refused."""
        self._has_fragments = not forbid_fragments(self._unicast)

    def offers(self) -> dict[str, bool]:
        """What the kernel offers."""
        return {
            "segmentation": self._segments,
            "coalescing": self._coalesces,
            "dont_fragment": not self._has_fragments,
        }

    def _bind(self, address: tuple[str, int], shared: bool, host: str) -> socket.socket:
        sock = socket.socket(self._family, socket.SOCK_DGRAM)
        self._sockets.append(sock)
        if shared:
            # Every member on this machine binds the multicast port, and each gets every datagram.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        index = interface_index(host) if self._family == socket.AF_INET6 else 0
        try:
            sock.bind((*address, 0, index) if self._family == socket.AF_INET6 else address)
        except OSError as error:
            raise ConfigError(bind_failed(error, join_endpoint(*address), shared)) from None
        return sock

    def _join_multicast(self, host: str, me: Address) -> None:
        spec = self.spec
        listener = self._bind((spec.multicast, spec.multicast_port), shared=True, host=host)
        self._everybody = (join_group(listener, self._unicast, host, spec),)
        self._is_filtered = drop_own(listener, me)

    def close(self) -> None:
        """Close the sockets."""
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    def filenos(self) -> tuple[int, ...]:
        """The sockets: the kernel wakes a thread that waits for them directly, in one step."""
        return tuple(sock.fileno() for sock in self._sockets)

    def stats(self) -> dict[str, int]:
        """What was sent, received and dropped, and why."""
        lost = sum(kernel_drops(sock) for sock in self._sockets)
        if self._is_filtered:  # The kernel counts what the filter keeps away, as well.
            lost -= self._multicasts
        return {**self.counters, "dropped_buffer_full": max(0, lost)}

    # Sending --------------------------------------------------------------------------------------

    def learn(self, peer: Peer, is_claim: bool = False) -> None:
        """Remember where a member is; a process outside the view is answered where its datagrams
        come from, so that it cannot have answers sent to others."""
        self._places.learn(peer, is_claim)

    def send(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        """Send; what the kernel does not take is dropped and counted."""
        if members and not self._is_strict:
            self._drop_foreign()
        first = datagrams[0]
        if not first.segment and (len(datagrams) == 1 or first.nbytes > SEGMENT_SIZE_MAX):
            self._send_each(datagrams, members)
            return
        for target, group in grouped(datagrams, self.train_bytes):
            if self._segments and (len(group) > 1 or group[0].segment):
                self._send_segments(target, group, members)
            else:
                self._send_each(list(without_trains(group)), members)

    def _drop_foreign(self) -> None:
        self._is_strict = True
        groups = (self._group,) if self._guard is None else self._guard.tags
        for sock in self._sockets:
            drop_foreign(sock, self._me, groups)

    def sample_strangers(self, members: Sequence[Address], is_heavy: bool) -> None:
        """Have the kernel drop most of what is not from these members, also of what groups form
        with if `is_heavy`; all of it passes again when there are none."""
        groups = (self._group,) if self._guard is None else self._guard.tags
        how = (groups, members, is_heavy, self._guard is not None)
        for sock in self._sockets:
            if not (members and sample_strangers(sock, self._me, *how)):
                drop_foreign(sock, self._me, groups)

    def _send_each(self, datagrams: Sequence[Datagram], members: Sequence[Address]) -> None:
        nbytes = copies = 0
        sendto, sendmsg = self._unicast.sendto, self._unicast.sendmsg
        everybody = self._everybody
        for target, buffers, size, _ in datagrams:
            if target is None and everybody:
                addresses: Sequence[SocketAddress] = everybody
                self._multicasts += 1
            else:
                addresses = self._addresses(target, members)
            count = len(buffers)
            is_gathered = GATHER_SIZE * count <= size and 1 < count <= GATHER_MAX
            data = b"" if is_gathered else b"".join(buffers)
            for address in addresses:
                try:
                    if is_gathered:
                        sendmsg(buffers, (), 0, address)
                    else:
                        sendto(data, address)
                except OSError as error:
                    if not self._is_report(error, size):
                        self._on_send_error(error, address, size)
                    else:
                        self._send_to(b"".join(buffers), address)
                nbytes += size
                copies += 1
        self.counters["sent_datagrams"] += copies
        self.counters["sent_bytes"] += nbytes

    def _send_segments(
        self, target: Target, group: Sequence[Datagram], members: Sequence[Address]
    ) -> None:
        """Send datagrams in one call; one by one from now on, if the kernel cannot cut them."""
        train = group[0]
        if train.segment:
            data, size = train.buffers[0], train.segment
        else:
            data, size = b"".join([part for one in group for part in one.buffers]), train.nbytes
        count = -(-len(data) // size)
        request = segment_request(size)
        addresses = self._addresses(target, members)
        for at, address in enumerate(addresses):
            try:
                self._unicast.sendmsg((data,), request, 0, address)
            except OSError as error:
                if error.errno in UNSUPPORTED:
                    if not self._is_too_large(size):
                        self._segments = False
                        log.info("no segmentation offload here (%s)", error.strerror)
                    for rest in addresses[at:]:
                        self._send_cut(data, size, rest)
                    break
                if self._is_report(error, size):
                    self._send_cut(data, size, address)
                else:
                    self._on_send_error(error, address, size)
        self._multicasts += count if addresses is self._everybody else 0
        self.counters["sent_datagrams"] += count * len(addresses)
        self.counters["sent_bytes"] += len(data) * len(addresses)

    def _send_cut(self, data: Payload, size: int, address: SocketAddress) -> None:
        """Send the datagrams of a train one by one."""
        for begin in range(0, len(data), size):
            self._send_to(data[begin : begin + size], address)

    def _send_to(self, data: Payload, address: SocketAddress) -> None:
        try:
            self._unicast.sendto(data, address)
        except OSError as error:
            if not self._is_report(error, len(data)):
                self._on_send_error(error, address, len(data))

    def _is_report(self, error: OSError, nbytes: int) -> bool:
        """Whether an error is about an earlier datagram: nothing was sent this time."""
        if error.errno not in REPORTED or not self._read_errors():
            return False
        # The kernel reports a datagram that it refuses as well.
        return error.errno != errno.EMSGSIZE or not self._is_too_large(nbytes)

    def _addresses(
        self, target: Address | str | None, members: Sequence[Address]
    ) -> Sequence[SocketAddress]:
        if target is None:
            if self._everybody:
                return self._everybody
            return self._places.all_of(members)
        return self._places.find(target)

    def _is_too_large(self, nbytes: int) -> bool:
        """Whether a datagram does not fit the interface, whose MTU may have changed; the member is
        told."""
        if self._has_fragments:
            return False
        largest = datagram_max(*self._path)
        if nbytes <= largest:
            return False
        self.shrunk = largest
        return True

    def _on_send_error(self, error: OSError, address: SocketAddress, nbytes: int) -> None:
        code = error.errno or 0
        if code == errno.EMSGSIZE and self._is_too_large(nbytes):
            self.counters["dropped_too_large"] += 1
            return
        self.counters[f"dropped_send_{errno.errorcode.get(code, 'error').lower()}"] += 1
        if code not in self._complained and code != errno.EAGAIN:
            self._complained.add(code)
            log.warning(
                "cannot send to %s:%d (%s): check route and firewall; said once, always counted",
                address[0],
                address[1],
                error.strerror,
            )

    # Receiving ------------------------------------------------------------------------------------

    def use(self, placement: Placement) -> None:
        """Have the kernel write the next datagram where it is expected to belong."""
        if not self._coalesces:  # Which fragments arrive together is not known in advance.
            self.placement = placement
            placement.is_used = True

    def receive(self, limit: int) -> Iterator[Received]:
        """What has arrived, up to `limit` buffers per socket, each read when it is asked for.

        So the memory of one is free again for the next, and stays in the processor's cache.
        """
        has_errors, read = 0, self._read_coalesced if self._coalesces else self._read
        for fd, events in self._ready.poll(0):
            yield from read(self._by_fd[fd], limit)
            has_errors |= events & select.POLLERR
        if has_errors:  # Last: a datagram that has waited is older than its sender's end.
            self._read_errors()

    def _read_errors(self) -> bool:
        """Note the members at whose port no process listens; whether anything was reported."""
        has_any = False
        for code, place in reported_errors(self._unicast):
            has_any = True
            self.counters[f"reported_{errno.errorcode.get(code, 'error').lower()}"] += 1
            endpoint = self._places.endpoints.get(place)
            if code == errno.ECONNREFUSED and endpoint is not None and endpoint not in self.hints:
                self.hints.append(endpoint)
        return has_any

    def _read_coalesced(self, sock: socket.socket, limit: int) -> Iterator[Received]:
        places, many, count, nbytes = self._places, self._many.get(sock), 0, 0
        try:
            for _ in range(limit):
                if many is not None and many.size:
                    found, joined = many.read(sock)
                    for some, source in joined:
                        count += len(some) if isinstance(some, Segments) else 1
                        nbytes += self._hear(some, source)
                        yield some
                    if found < SLOTS:
                        break
                    continue
                data, ancillary, _, source = sock.recvmsg(
                    DATAGRAM_MAX, ANCILLARY_SIZE, socket.MSG_DONTWAIT
                )
                if places.sources.get(source) != data[SOURCE]:
                    places.hear(data, source)
                size, length = segment_size(ancillary), len(data)
                nbytes += length
                if 0 < size < length:
                    segments = Segments(data, size)
                    count += len(segments)
                    places.hear_segments(segments, source)
                    yield segments
                    del segments
                else:
                    count += 1
                    if many is not None:
                        many.learn(length)
                    yield data
                del data
                if length < size + SMALL and not self._ready.poll(0):
                    break
        except OSError as error:
            self._on_receive_error(error)
        self.counters["received_datagrams"] += count
        self.counters["received_bytes"] += nbytes

    def _hear(self, some: bytes | Segments, source: SocketAddress) -> int:
        """Learn who sends from there; how many bytes these are."""
        places = self._places
        data = some.data if isinstance(some, Segments) else some
        if places.sources.get(source) != data[SOURCE]:
            places.hear(data, source)
        if isinstance(some, Segments):
            places.hear_segments(some, source)
        return len(data)

    def _read(self, sock: socket.socket, limit: int) -> Iterator[Received]:
        places, sources = self._places, self._places.sources
        placement = self.placement if sock is not self._unicast else _NOWHERE
        count = nbytes = 0
        data: bytes | memoryview
        try:
            while count < limit:
                if placement.advertised is None:
                    data, source = sock.recvfrom(DATAGRAM_MAX, socket.MSG_DONTWAIT)
                    size = len(data)
                else:
                    size, _, _, source = sock.recvmsg_into(
                        placement.advertised, 0, socket.MSG_DONTWAIT
                    )
                    data = placement.placed(size)
                if sources.get(source) != data[SOURCE] and data is not PLACED:
                    places.hear(data, source)
                count += 1
                nbytes += size
                yield data
                del data
                if placement.is_whole:
                    placement.is_whole = False
                    break
                if size < SMALL and not self._ready.poll(0):
                    break  # Nothing else is there: to be told so by an error costs more.
        except OSError as error:
            self._on_receive_error(error)
        self.counters["received_datagrams"] += count
        self.counters["received_bytes"] += nbytes

    def _on_receive_error(self, error: OSError) -> None:
        """Nothing is there; or a port that no process listens at, say, reported by the network."""
        if not isinstance(error, BlockingIOError):
            name = errno.errorcode.get(error.errno or 0, "error").lower()
            self.counters[f"receive_{name}"] += 1


_NOWHERE = Placement()
"""What comes for this member alone is no large message to the group."""
