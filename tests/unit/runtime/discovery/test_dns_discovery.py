"""Discovery by a name: its addresses, or why it has none."""

import socket

import pytest

from ringcast.control.discovery import PLACES_MAX, Sighting
from ringcast.runtime.discovery.dns_discovery import look_up


def test_every_address_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*arguments: object) -> object:
        hosts = [f"10.0.{n % 3}.{n}" for n in range(300)] * 2
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 7)) for host in hosts]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    found = look_up("service:7", socket.AF_INET)
    assert len(found.places) == PLACES_MAX == len(set(found.places))
    assert found.problem == ""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "the name is not known"),
        (socket.gaierror(socket.EAI_NODATA, "No address"), "the name has no address yet"),
        (socket.gaierror(socket.EAI_AGAIN, "Try again"), "cannot be looked up: Try again"),
        (UnicodeError("label too long"), "cannot be looked up: label too long"),
    ],
)
def test_why_there_is_no_address(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lookup(*arguments: object) -> object:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    assert look_up("service:7", socket.AF_INET) == Sighting((), words)


def test_numbers_stand_for_themselves() -> None:
    assert look_up("127.0.0.1:7", socket.AF_INET).places == ("127.0.0.1:7",)
    assert look_up("[::1]:7", socket.AF_INET6).places == ("[::1]:7",)
