"""A member in every worker, or one gateway for all: what rows to a group cost.

Two receivers, and up to 16 workers that together write 200,000 rows of 100 bytes and wait until
every receiver has them, over TCP on this machine. CPU seconds are those of all processes.
`ringcast bench sink` prints it.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from uuid import UUID

from ringcast import StackSpec, Timeout, presets, sync
from ringcast.gateway import Settings, connect
from ringcast.gateway.client import SOCKET
from ringcast.gateway.delivery import DeliveryWatch
from ringcast.gateway.server import Gateway
from ringcast.job_rows import RowDeduplicator, Stamp

ROWS, SIZE, FRAME = 200_000, 100, 500
WORKERS = (1, 2, 4, 8, 16)
WAIT = 60.0


def receive(endpoint: str | None, count: int, told: Connection) -> None:
    """Be a member that receives rows until this many have arrived."""
    found = {"seeds": [endpoint]} if endpoint else {"when_alone": "create"}
    group = sync.join("rows", presets.tcp(**found), timeout=WAIT)
    told.send(group.endpoint)
    rows = sync.rows(group, RowDeduplicator())
    for _ in range(count):
        next(rows)
    try:
        group.receive(timeout=0.5)  # Coming back for more is what acks the last ones.
    except Timeout:
        told.send(cpu())
    told.recv()
    group.close()


def write_as_member(settings: Settings, number: int, rows: int, told: Connection) -> None:
    """A worker that is a member itself."""
    watch, spec = DeliveryWatch(1), StackSpec.from_toml(settings.spec)
    group = sync.join("rows", spec, receive=False, observer=watch, timeout=WAIT)
    start(told)
    stamp = Stamp(UUID(int=1), 0, number)
    for _ in range(0, rows, FRAME):
        group.send_many(stamp.messages([b"x" * SIZE] * FRAME))
    assert watch.flush(WAIT)
    finish(told)
    group.close()


def write_through_gateway(settings: Settings, number: int, rows: int, told: Connection) -> None:
    """A worker that hands its rows to the gateway."""
    with connect(settings) as gateway:
        start(told)
        stamp = Stamp(UUID(int=1), 0, number)
        for _ in range(0, rows, FRAME):
            gateway.send(stamp.messages([b"x" * SIZE] * FRAME))
        gateway.flush()
        finish(told)


def be_gateway(settings: Settings, told: Connection) -> None:
    """The gateway, in a process whose cost can be asked."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(settings.path_base().with_suffix(SOCKET)))
    listener.listen(64)
    told.send(None)
    Gateway(settings, listener, lambda: None).run()
    told.send(cpu())


def run(kind: str, workers: int) -> str:
    """One line of the table."""
    receivers, endpoint = list[Connection](), None
    for _ in range(2):
        receivers.append(child(receive, endpoint, ROWS))
        endpoint = endpoint or receivers[0].recv()
    receivers[1].recv()
    spec = presets.tcp(seeds=[str(endpoint)]).to_toml()
    settings = Settings(group="rows", spec=spec, timeout=WAIT, idle=0.5)
    begun = time.monotonic()
    helpers: list[Connection] = []
    if kind == "gateway":
        helpers.append(child(be_gateway, settings))
        helpers[0].recv()
    work = write_through_gateway if kind == "gateway" else write_as_member
    writers = [child(work, settings, number, ROWS // workers) for number in range(workers)]
    for writer in writers:
        writer.recv()
    joined, begun = time.monotonic() - begun, time.monotonic()
    for writer in writers:
        writer.send(None)
    costs = [float(writer.recv()) for writer in writers]
    wall = time.monotonic() - begun
    costs += [float(told.recv()) for told in [*receivers, *helpers]]
    for told in receivers:
        told.send(None)
    rate, cost = ROWS / wall, sum(costs) * 1e6 / ROWS
    return f"{workers:>7} {kind:>8} {joined:>9.2f} {rate:>12,.0f} {cost:>22.1f}"


def child(target: object, *arguments: object) -> Connection:
    """A process, and the connection to it."""
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=target, args=(*arguments, there), daemon=True).start()  # type: ignore[arg-type]
    return here


def start(told: Connection) -> None:
    """Wait until all workers have joined."""
    told.send(None)
    told.recv()


def finish(told: Connection) -> None:
    """Report the CPU seconds of this process."""
    told.send(cpu())


def cpu() -> float:
    """CPU seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def table() -> Iterator[str]:
    """The table, line by line, each as soon as it is measured."""
    with tempfile.TemporaryDirectory(prefix="rc-") as home:
        os.environ["XDG_RUNTIME_DIR"] = home
        yield "workers  members   join, s       rows/s   CPU s per million rows"
        for count in WORKERS:
            for kind in ("workers", "gateway"):
                yield run(kind, count)
