"""Endpoints as text and as socket addresses, names without waiting, and interfaces."""

import socket
import threading

import pytest

from ringcast.core.model.address import Address
from ringcast.errors import ConfigError
from ringcast.runtime.net.endpoints import (
    LOOKUPS_MAX,
    NAMES_MAX,
    KnownPlaces,
    Resolver,
    advertised_host,
    bind_host,
    interface_index,
    join_endpoint,
    numeric_address,
    split_endpoint,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.0.7:7800", "10.0.0.7", 7800),
        ("[::1]:1", "::1", 1),
        ("db.example:65535", "db.example", 65535),
    ],
)
def test_endpoints_are_text(text: str, host: str, port: int) -> None:
    assert split_endpoint(text) == (host, port)
    assert join_endpoint(host, port) == text


WRONG = [
    "",
    "host",
    "host:",
    ":80",
    "host:0",
    "host:65536",
    "host:x",
    "[::1",
    "[::1:80",
    "::1]:80",
    "host:" + "9" * 5_000,
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        split_endpoint(text)


def test_numbers_need_no_name_service() -> None:
    assert numeric_address("127.0.0.1:80", socket.AF_INET) == ("127.0.0.1", 80)
    assert numeric_address("[::1]:80", socket.AF_INET6) == ("::1", 80, 0, 0)
    assert numeric_address("localhost:80", socket.AF_INET) is None
    assert numeric_address("nonsense", socket.AF_INET) is None


def test_a_number_of_the_other_family_is_no_address() -> None:
    assert numeric_address("[::1]:80", socket.AF_INET) is None
    assert numeric_address("127.0.0.1:80", socket.AF_INET6) is None


@pytest.mark.parametrize(
    "text", ["..:9", "h:" + "9" * 5_000, "\ud800:9", "\0:9", "é" * 80 + ":9", "x" * 70 + ".org:9"]
)
def test_a_peer_may_call_anything_its_endpoint(text: str) -> None:
    resolver = Resolver(socket.AF_INET)
    assert resolver.lookup(text) == ()
    for thread in threading.enumerate():
        if thread.name == f"ringcast-resolve-{text}":
            thread.join(10.0)
    assert not resolver._busy


def test_names_are_looked_up_beside() -> None:
    resolver = Resolver(socket.AF_INET)
    assert resolver.lookup("127.0.0.1:80") == (("127.0.0.1", 80),)
    assert resolver.lookup("localhost:80") in ((), (("127.0.0.1", 80),))
    for thread in threading.enumerate():
        if thread.name == "ringcast-resolve-localhost:80":
            thread.join(10.0)
    assert resolver.lookup("localhost:80") == (("127.0.0.1", 80),)


def test_a_name_that_does_not_exist_has_no_address() -> None:
    resolver = Resolver(socket.AF_INET)
    assert resolver.lookup("no-such-host.invalid:80") == ()
    assert resolver.lookup("not an endpoint") == ()


def test_what_to_bind_to() -> None:
    assert bind_host("10.1.2.3", "") == "10.1.2.3"
    assert bind_host("fe80::1%lo", "") == "fe80::1%lo"
    assert bind_host("lo", "") == "127.0.0.1"
    assert bind_host("", "127.0.0.1") == "127.0.0.1"
    with pytest.raises(ConfigError, match="not an address, interface or host"):
        bind_host("nowhere0", "")


@pytest.mark.parametrize("text", ["\x1b[2J", "\ud800", "a\0b", "x" * 5_000])
def test_a_wrong_text_is_shown_short_and_steers_no_terminal(text: str) -> None:
    for refuse in (lambda: bind_host(text, ""), lambda: split_endpoint(f"{text}:x")):
        with pytest.raises(ConfigError) as caught:
            refuse()
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300


def test_a_member_advertises_its_bound_or_given_host() -> None:
    assert advertised_host("10.1.2.3", "127.0.0.1") == "10.1.2.3"
    assert advertised_host("0.0.0.0", "127.0.0.1") == "127.0.0.1"


def test_the_interface_of_an_address() -> None:
    index = socket.if_nametoindex("lo")
    assert interface_index("fe80::1%lo") == index
    assert interface_index("2001:db8::1234") == 0


def test_names_that_peers_send_take_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def wait(*arguments: object, **options: object) -> list[object]:
        if options.get("flags"):
            raise socket.gaierror("not a number")
        answered.wait(10.0)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    resolver = Resolver(socket.AF_INET)
    for number in range(1_000):
        assert resolver.lookup(f"host-{number}.example:80") == ()
    threads = [t for t in threading.enumerate() if t.name.startswith("ringcast-resolve-host-")]
    answered.set()
    for thread in threads:
        thread.join(10.0)
    assert len(threads) == LOOKUPS_MAX


def test_claims_push_no_member_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.endpoints.PLACES_MAX", 3)
    places = KnownPlaces[str]()
    assert places.put(Address(1), "member", is_claim=False) is None
    forgotten = [places.put(Address(10 + n), f"{n}", is_claim=True) for n in range(5)]
    assert forgotten == [None, None, None, Address(10), Address(11)]
    assert places.get(Address(1)) == "member"
    assert places.get(Address(14)) == "4"
    assert Address(10) not in places


def test_the_oldest_members_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.endpoints.PLACES_MAX", 2)
    places = KnownPlaces[str]()
    for number in (1, 2, 1, 3):
        places.put(Address(number), "", is_claim=False)
    assert [Address(n) in places for n in (1, 2, 3)] == [True, False, True]


def test_a_process_is_in_one_table() -> None:
    places = KnownPlaces[str]()
    places.put(Address(1), "claimed", is_claim=True)
    places.put(Address(1), "known", is_claim=False)
    assert places.get(Address(1)) == "known"
    places.put(Address(1), "claimed later", is_claim=True)
    assert places.get(Address(1)) == "claimed later"


def test_the_names_that_are_remembered_are_bounded() -> None:
    resolver = Resolver(socket.AF_INET)
    for port in range(1, 1_001):
        assert resolver.lookup(f"127.0.0.1:{port}") == (("127.0.0.1", port),)
    assert len(resolver._known) == NAMES_MAX
