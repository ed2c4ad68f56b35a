"""A member with all that goes with it: who looks for others, who logs, who answers questions."""

from __future__ import annotations

from ringcast import presets
from ringcast.parts.discovery import Discovery
from ringcast.runtime.arguments import cannot_start, check_join
from ringcast.runtime.logbook import keep_log
from ringcast.runtime.lookup import Lookup
from ringcast.runtime.member import Member
from ringcast.runtime.observer import Observer, together
from ringcast.runtime.service import Services
from ringcast.runtime.status import StatusServer, with_process
from ringcast.spec import StackSpec


def make_member(
    group: str,
    spec: StackSpec | None,
    name: str,
    receive: bool,
    backlog_bytes: int,
    observer: Observer | None = None,
    status: bool = False,
    metrics: int | str | None = None,
    services: Services | None = None,
) -> Member:
    """A member that is not started yet; `ringcast.join` explains the arguments.

    Raises ConfigError.
    """
    check_join(group, spec, name, backlog_bytes)
    stack = presets.loopback() if spec is None else spec
    discovery = stack["discovery"]
    assert isinstance(discovery, Discovery)
    observers: list[Observer] = [Lookup(discovery)] if discovery.dns or discovery.file else []
    if observer is not None:
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
    """Answer questions about the member for as long as it lives."""
    if status:
        server = StatusServer(str(member.peer.address), member.stats)
        member.endings.append(server.close)
    if metrics is not None:
        # It takes a while to load, and few members need it.
        from ringcast.runtime.exporter import Exporter  # noqa: PLC0415

        exporter = Exporter(metrics, lambda: with_process(member.stats()))
        member.endings.append(exporter.close)
