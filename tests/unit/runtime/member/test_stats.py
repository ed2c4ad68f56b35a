"""`stats()` keeps what its type says."""

import asyncio
from types import UnionType
from typing import get_origin, get_type_hints

import ringcast
from ringcast import presets, protocols
from ringcast.runtime.member.stats import RoleStats, Stats
from ringcast.runtime.ops.status_text import overview
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


async def blocked(group: ringcast.Group, to: ringcast.Address | None = None) -> ringcast.Stats:
    """The figures of a member while a send of it waits."""
    sending = asyncio.create_task(group.send_many([bytes(1_000)] * 100_000, to=to))
    while not group.stats()["blocked_senders"]:
        assert not sending.done()
        await asyncio.sleep(0)
    told = group.stats()
    sending.cancel()
    await asyncio.wait([sending])
    return told


def test_a_send_without_a_majority_says_what_it_waits_for() -> None:
    spec = presets.loopback().replace(Memory()).insert(protocols.Majority(first=2))

    async def main() -> None:
        group = await ringcast.join("majority", spec)
        told = await blocked(group)
        assert told["blocked_by"] == "no majority has agreed on the view yet"
        assert "s; no majority has agreed on the view yet" in overview([told])
        await group.close()

    asyncio.run(main())


def test_a_send_to_one_member_names_that_member() -> None:
    spec = presets.loopback().replace(Memory())

    async def main() -> None:
        ann = await ringcast.join("to one", spec, name="ann")
        bob = await ringcast.join("to one", spec, name="bob")
        told = await blocked(ann, to=bob.me)
        assert (told["waits_for"], told["blocked_by"]) == (["bob"], "")
        await bob.close()
        await ann.close()

    asyncio.run(main())
