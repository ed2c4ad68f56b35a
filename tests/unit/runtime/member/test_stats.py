"""`stats()` keeps what its type says."""

from types import UnionType
from typing import get_origin, get_type_hints

import ringcast
from ringcast import presets, protocols
from ringcast.runtime.member.stats import RoleStats, Stats
from ringcast.transports import Memory


def test_every_key_is_there_and_has_the_type_that_it_says() -> None:
    with ringcast.sync.join("stats", presets.loopback().replace(Memory()), name="a") as group:
        stats = group.stats()
    assert stats["members"] == ["a"]
    assert set(stats) >= Stats.__required_keys__
    assert set(stats) <= Stats.__required_keys__ | Stats.__optional_keys__
    hints = get_type_hints(Stats)
    for key, value in stats.items():
        origin = get_origin(hints[key])
        kind = hints[key] if origin in (None, UnionType) else origin
        assert isinstance(value, kind), key


def test_the_type_has_every_role_that_says_something() -> None:
    spec = presets.lan().insert(protocols.Compress(), protocols.Majority(), protocols.Flow())
    with ringcast.sync.join("roles", spec.replace(Memory()), name="a") as group:
        told = group._member.stack.snapshot().roles
    assert set(told) <= set(get_type_hints(RoleStats))
    assert {"quorum", "flow", "membership"} <= set(told)


def test_the_version_is_a_number() -> None:
    assert ringcast.__version__[0].isdigit()
