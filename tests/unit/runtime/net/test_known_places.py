"""Members and other processes are remembered apart from each other."""

import pytest

from ringcast.core.model.address import Address
from ringcast.runtime.net.known_places import KnownPlaces

MEMBER = Address(1)


def test_claims_push_no_member_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.known_places.PLACES_MAX", 3)
    places = KnownPlaces[str]()
    assert places.put(MEMBER, "member", is_claim=False) is None
    forgotten = [places.put(Address(10 + n), f"{n}", is_claim=True) for n in range(5)]
    assert forgotten == [None, None, None, Address(10), Address(11)]
    assert places.get(MEMBER) == "member"
    assert places.get(Address(14)) == "4"
    assert Address(10) not in places


def test_the_oldest_members_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringcast.runtime.net.known_places.PLACES_MAX", 2)
    places = KnownPlaces[str]()
    for number in (1, 2, 1, 3):
        places.put(Address(number), "", is_claim=False)
    assert [Address(n) in places for n in (1, 2, 3)] == [True, False, True]


def test_a_process_is_in_one_table() -> None:
    places = KnownPlaces[str]()
    places.put(MEMBER, "claimed", is_claim=True)
    places.put(MEMBER, "known", is_claim=False)
    assert places.get(MEMBER) == "known"
    places.put(MEMBER, "claimed later", is_claim=True)
    assert places.get(MEMBER) == "claimed later"
