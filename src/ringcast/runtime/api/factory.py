"""Makes a member with its discovery threads, its log, its status socket and its metrics."""

from __future__ import annotations

from os import PathLike

from ringcast import presets
from ringcast.closed.keys import chosen_keys
from ringcast.control.discovery import Discovery
from ringcast.errors import ConfigError
from ringcast.runtime.discovery.background import BackgroundDiscovery
from ringcast.runtime.discovery.method import chosen_methods
from ringcast.runtime.member.arguments import cannot_start, check_join
from ringcast.runtime.member.member import Member
from ringcast.runtime.member.observer import MemberListener, together
from ringcast.runtime.member.security import Credentials
from ringcast.runtime.member.services import ServiceOptions
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.net.registry import capabilities_of
from ringcast.runtime.ops.logs import keep_log
from ringcast.runtime.ops.status import StatusServer, with_process
from ringcast.spec import StackSpec


def make_member(
    group: str,
    spec: StackSpec | None,
    name: str,
    receive: bool,
    backlog_bytes: int,
    observer: MemberListener | None = None,
    status: bool = False,
    metrics: int | str | None = None,
    services: ServiceOptions | None = None,
    key: bytes | None = None,
    key_file: str | PathLike[str] | None = None,
) -> Member:
    """A member that is not started yet; `ringcast.join` explains the arguments.

    Raises ConfigError.
    """
    check_join(group, spec, name, backlog_bytes)
    credentials = Credentials(*chosen_keys(key, key_file))
    stack = presets.loopback() if spec is None else spec
    discovery = stack["discovery"]
    assert isinstance(discovery, Discovery)
    if "transport" in stack and capabilities_of(stack["transport"]).is_networked:
        for seed in discovery.seeds:
            split_endpoint(seed)  # No member could answer there.
    observers: list[MemberListener] = []
    if any(chosen_methods(discovery)):
        observers.append(BackgroundDiscovery(discovery))
    if observer is not None:
        if not hasattr(observer, "begin"):
            raise ConfigError(f"observer is {observer!r}: give a listener, say a LiveTrace")
        observers.append(observer)
    try:
        member = Member(
            group,
            stack,
            name,
            receive=receive,
            backlog_bytes=backlog_bytes,
            observer=together(observers),
            services=services,
            credentials=credentials,
        )
    except OSError as error:
        raise cannot_start(error) from None
    try:
        _serve(member, status, metrics)
    except OSError as error:
        member.shut()
        raise cannot_start(error) from None
    except BaseException:
        member.shut()
        raise
    keep_log(member)
    return member


def _serve(member: Member, status: bool, metrics: int | str | None) -> None:
    """Serve status and metrics for as long as the member lives."""
    if status:
        server = StatusServer(str(member.peer.address), member.stats)
        member.endings.append(server.close)
    if metrics is not None:
        # It takes a while to load, and few members need it.
        from ringcast.runtime.ops.exporter import Exporter  # noqa: PLC0415

        exporter = Exporter(metrics, lambda: with_process(member.stats()))
        member.endings.append(exporter.close)
