"""Figures for Prometheus over HTTP, and the status socket, turned on with `join`."""

import socket
import struct
import urllib.error
import urllib.request
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

import ringcast
from ringcast import sync
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.ops.exporter import Exporter
from ringcast.runtime.ops.status import running_members
from tests.runtime.support import group_name, memory


def scrape(endpoint: str, path: str = "/metrics") -> tuple[int, str, str]:
    """Status, content type and body."""
    try:
        with urllib.request.urlopen(f"http://{endpoint}{path}", timeout=15) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, "", error.read().decode()


def test_a_scrape_gets_the_figures_of_the_moment() -> None:
    members = ["a"]
    exporter = Exporter(0, lambda: {"group": "g", "name": "a", "members": members})
    try:
        status, kind, body = scrape(exporter.endpoint)
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert 'ringcast_members{group="g",member="a"} 1\n' in body
        members.append("b")
        assert 'ringcast_members{group="g",member="a"} 2\n' in scrape(exporter.endpoint)[2]
        assert scrape(exporter.endpoint, "/metrics?x=1")[0] == 200
        assert scrape(exporter.endpoint, "/")[0] == 404
    finally:
        exporter.close()
    with pytest.raises(OSError, match="refused"):
        scrape(exporter.endpoint)


def test_a_probe_learns_whether_the_member_is_in_its_group() -> None:
    told: dict[str, object] = {"view": None, "members": [], "closed": None}
    exporter = Exporter(0, lambda: told)
    try:
        assert scrape(exporter.endpoint, "/ready")[0] == 503
        told |= {"view": "3@a1", "members": ["a", "b"]}
        status, _, body = scrape(exporter.endpoint, "/ready")
        assert (status, body) == (200, "in a view with 2 members\n")
        told["closed"] = "left"
        assert scrape(exporter.endpoint, "/ready")[0] == 503
    finally:
        exporter.close()


@pytest.mark.parametrize("host", ["127.0.0.2", "[::1]"])
def test_the_exporter_listens_at_a_given_address(host: str) -> None:
    with socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM
    ) as lent:
        lent.bind((host.strip("[]"), 0))
        port = lent.getsockname()[1]
    exporter = Exporter(f"{host}:{port}", dict)
    try:
        assert exporter.endpoint == f"{host}:{port}"
        assert scrape(exporter.endpoint)[0] == 200
    finally:
        exporter.close()


def test_a_port_that_cannot_be_had_is_said_before_anything_is_joined() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ringcast.ConfigError, match=f"127.0.0.1:{port} .*another address or port"
        ):
            sync.join(group_name(), memory(), metrics=port)
    with pytest.raises(ringcast.ConfigError, match="metrics is 70000"):
        sync.join(group_name(), memory(), metrics=70_000)
    with pytest.raises(ringcast.ConfigError, match='"nowhere" is not an endpoint'):
        sync.join(group_name(), memory(), metrics="nowhere")
    with pytest.raises(ringcast.ConfigError, match="is not the name of a host"):
        sync.join(group_name(), memory(), metrics="é" * 80 + ":9")


def test_a_member_can_be_scraped_and_asked_for_as_long_as_it_lives(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    home = Path(mkdtemp(dir="/tmp"))  # A short path: that of a socket has 107 bytes.
    request.addfinalizer(lambda: rmtree(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    with socket.create_server(("127.0.0.1", 0)) as lent:
        port = lent.getsockname()[1]
    name = group_name()
    with sync.join(name, memory(), name="ann", status=True, metrics=port) as group:
        body = scrape(f"127.0.0.1:{port}")[2]
        assert f'ringcast_members{{group="{name}",member="ann"}} 1\n' in body
        (status,) = running_members(name)
        assert status["name"] == "ann"
        assert status["peers"] == group.stats()["peers"]
    assert running_members(name) == []
    assert list((home / "ringcast").iterdir()) == []
    with pytest.raises(OSError, match="refused"):
        scrape(f"127.0.0.1:{port}")


def test_stats_say_where_everybody_is() -> None:
    with sync.join(group_name(), memory(), name="ann") as group:
        assert group.stats()["peers"] == [
            {"address": str(group.me), "name": "ann", "endpoint": group.endpoint}
        ]


def test_a_client_that_sends_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.ops.page_server.REQUEST_TIMEOUT", 0.3)
    exporter = Exporter(0, dict)
    host, port = split_endpoint(exporter.endpoint)
    with socket.create_connection((host, port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.settimeout(0.05)  # Between two bytes: shorter than the bound of a single read.
        sent = 0
        while sent < 400:
            try:
                client.send(b"x")
                if client.recv(1) == b"":
                    break
            except TimeoutError:
                sent += 1
            except OSError:
                break
        assert sent < 100, "the connection was not ended"
    exporter.close()


@pytest.mark.parametrize(
    "said",
    [
        *(b"", b"GET", b"GET /metrics HTTP/1.1\r\nA", b"\0" * 70_000),
        b"GET / HTTP/\xd9\xa3.1\r\n\r\n",
        b"GET \x1b[2J HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"GET / HTTP/" + b"1" * 5_000 + b".1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    ],
)
def test_a_client_that_goes_in_the_middle_leaves_no_traceback(
    said: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    exporter = Exporter(0, dict)
    with socket.create_connection(split_endpoint(exporter.endpoint)) as client:
        client.sendall(said)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert scrape(exporter.endpoint)[0] == 200, "the next one is answered"
    exporter.close()
    assert capfd.readouterr().err == ""
