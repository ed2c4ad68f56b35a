"""Names that seeds have, and seeds that cannot be reached."""

import socket

import pytest

from ringcast.runtime.doctor.findings import DoctorFinding, Severity
from ringcast.runtime.doctor.seeds import Inquiry, ask_seeds, resolve
from ringcast.runtime.net.endpoints import is_local, is_remote
from ringcast.transports import Tcp, Udp


def test_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*arguments: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    found = resolve("nowhere:7", socket.AF_INET)
    assert isinstance(found, DoctorFinding)
    assert found.verdict is Severity.PROBLEM
    assert found.text == "the name nowhere is not known here (Name or service not known): check it"


def test_every_address_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*arguments: object) -> object:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.0.{n}", 7)) for n in range(99)]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    found = resolve("service:7", socket.AF_INET)
    assert isinstance(found, list)
    assert found[:2] == ["10.0.0.0:7", "10.0.0.1:7"]
    assert len(found) == 16


def test_numbers_are_not_looked_up() -> None:
    assert resolve("127.0.0.1:7", socket.AF_INET) == ["127.0.0.1:7"]
    assert resolve("[::1]:7", socket.AF_INET6) == ["[::1]:7"]


def test_a_seed_of_the_other_kind_of_address() -> None:
    found = resolve("[::1]:7", socket.AF_INET)
    assert isinstance(found, DoctorFinding)


def test_a_seed_behind_a_firewall(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*arguments: object) -> object:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect)
    (answer,) = ask_seeds(["127.0.0.1:7"], Inquiry(Tcp(), "g", 0.1))
    assert answer.finding.verdict is Severity.PROBLEM
    assert answer.finding.text.startswith("127.0.0.1:7 cannot be reached (no answer)")


@pytest.mark.parametrize("transport", [Tcp(), Udp()])
def test_a_seed_elsewhere_cannot_reach_loopback(transport: Tcp | Udp) -> None:
    (answer,) = ask_seeds(["203.0.113.9:7"], Inquiry(transport, "g", 0.1))
    assert answer.finding.verdict is Severity.PROBLEM
    assert "give --bind" in answer.finding.text


def test_what_is_this_machine_alone() -> None:
    assert is_local("127.0.0.9")
    assert is_local("::1")
    assert not is_local("10.0.0.7")
    assert not is_local("fe80::1%eth0")
    assert not is_local("eth0")
    assert is_remote("10.0.0.7")
    assert not is_remote("::1")
    assert not is_remote("a.name")
