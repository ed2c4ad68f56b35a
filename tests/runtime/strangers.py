"""Those who are no members of a group, for tests, and what `ringcast doctor` says about them."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import overload

from ringcast import StackSpec, presets
from ringcast.transports import Udp
from tests.runtime.command import run
from tests.runtime.namespaces import Wrapper
from tests.runtime.support import SOON


@overload
def doctor(
    home: Path, *words: str, wrapper: Wrapper = ..., topic: None = ...
) -> tuple[int, dict[str, str]]: ...
@overload
def doctor(
    home: Path, *words: str, wrapper: Wrapper = ..., topic: str
) -> tuple[int, list[str]]: ...
def doctor(
    home: Path, *words: str, wrapper: Wrapper = (), topic: str | None = None
) -> tuple[int, dict[str, str] | list[str]]:
    """The exit status, and of each topic what was found last, with its verdict before it.

    With a topic: all that was found there.
    """
    status, out, err = run(home, "doctor", "--json", *words, wrapper=wrapper)
    assert err == ""
    told = json.loads(out)
    assert told["ok"] == (status == 0)
    found = [(f["topic"], f"{f['verdict']}: {f['text']}") for f in told["findings"]]
    if topic is None:
        return status, dict(found)
    return status, [text for about, text in found if about == topic]


def multicast(tmp_path: Path) -> tuple[str, StackSpec]:
    """A file with a stack over multicast on the loopback interface, at a port of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lent:
        lent.bind(("127.0.0.1", 0))
        spec = presets.loopback().replace(multicast_port=lent.getsockname()[1])
    path = tmp_path / "multicast.toml"
    path.write_text(spec.to_toml())
    return str(path), spec


@contextmanager
def greeter(greeting: bytes) -> Iterator[str]:
    """A stranger that says this to every caller; where it listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        callers: list[socket.socket] = []

        def serve() -> None:
            try:
                while True:
                    callers.append(server.accept()[0])
                    with suppress(ConnectionError):  # It has gone already.
                        callers[-1].sendall(greeting)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(SOON)
        for caller in callers:
            caller.close()


@contextmanager
def shouting(spec: StackSpec, datagram: bytes) -> Iterator[None]:
    """A stranger that says this again and again, on the loopback interface, to all members."""
    udp, over = spec["Udp"], threading.Event()
    assert isinstance(udp, Udp)

    def shout(sock: socket.socket) -> None:
        while not over.wait(0.02):
            sock.sendto(datagram, (udp.multicast, udp.multicast_port))

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        interface = socket.inet_aton("127.0.0.1")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        thread = threading.Thread(target=shout, args=(sock,), daemon=True)
        thread.start()
        yield
        over.set()
        thread.join(SOON)
