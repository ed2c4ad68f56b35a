"""The fingerprint of a stack, and groups that refuse another."""

import pytest

from ringcast import presets
from ringcast.core.stack.fingerprint import difference, fingerprint
from ringcast.protocols import Compress, Majority, NakAck4
from ringcast.sim import World
from ringcast.spec import StackSpec

LAN = presets.lan()


def of(spec: StackSpec) -> str:
    return fingerprint(list(spec))


def test_what_a_member_may_have_for_itself_is_not_in_it() -> None:
    assert of(LAN) == "fragment=Fragment multicast=NakAck4(retain=True) unicast=Unicast"
    assert of(presets.tcp(seeds=["a:1"])) == of(LAN)
    assert of(LAN.replace(NakAck4(max_bytes=3, flight_bytes=2, ack_threshold=1))) == of(LAN)


@pytest.mark.parametrize(
    ("joiner", "words"),
    [
        (LAN, ""),
        (
            LAN.insert(Compress(algorithm="zlib")),
            "this member has Compress(algorithm=zlib,max_message=16000000), and the group",
        ),
        (presets.stable(), "the group has NakAck4, and this member has NakAck3"),
        (LAN.without("Fragment"), "the group has Fragment, and this member does not"),
        (LAN.replace("NakAck4", capacity=512), ""),
        (
            LAN.replace("NakAck4", retain=False).insert(Compress(algorithm="zlib")),
            "the group has NakAck4(retain=True), and this member has NakAck4(retain=False)",
        ),
    ],
)
def test_the_difference_is_named(joiner: StackSpec, words: str) -> None:
    found = difference(of(LAN), of(joiner))
    assert words in found
    assert bool(found) is bool(words)


def test_settings_that_only_a_protocol_of_one_side_wants_alike_are_not_named() -> None:
    ordered = LAN.with_total_order()
    assert difference(of(LAN), of(ordered)) == "this member has Sequencer, and the group does not"
    assert difference(of(ordered), of(LAN)) == "the group has Sequencer, and this member does not"


@pytest.mark.parametrize("text", ["", "=", "x" * 100_000, "multicast"])
def test_any_text_can_be_compared(text: str) -> None:
    assert difference(of(LAN), text)


def test_a_member_with_another_stack_is_refused_with_the_difference() -> None:
    world = World(seed=5, spec=LAN.insert(Compress(algorithm="zlib")), loss=0.1)
    a, b = world.join("a", "b")
    c = world.start("c", LAN)
    world.run(seconds=10.0)
    assert c.stack.closed == (
        "its stack differs: the group has Compress(algorithm=zlib,max_message=16000000),"
        " and this member does not"
    )
    assert a.view == b.view
    assert len(a.view or ()) == 2


def test_a_member_with_another_multicast_is_refused_and_blocks_no_sender() -> None:
    """Let in, it casts no votes, and the sender stands still when its table is full."""
    world = World(seed=5, spec=presets.stable().replace("NakAck3", capacity=1_000))
    a, b = world.join("a", "b")
    c = world.start("c", LAN)
    world.run(seconds=5.0)
    a.send_many([b"x"] * 5_000)
    world.run(seconds=20.0)
    assert (len(b.delivered), a.queued) == (5_000, 0)
    assert c.stack.closed is not None
    assert "the group has NakAck3, and this member has NakAck4" in c.stack.closed


def test_groups_with_other_stacks_do_not_merge() -> None:
    world = World(seed=6, spec=LAN)
    a = world.start("a")
    b = world.start("b", presets.stable())
    world.partition([a], [b])
    world.run(seconds=5.0)
    assert a.view is not None
    assert b.view is not None
    world.heal()
    world.run(seconds=30.0)
    assert len(a.view) == len(b.view) == 1
    assert a.stack.counters["refused_stack"] + b.stack.counters["refused_stack"] > 0


UNLIKE = {
    "a smaller window under one order": (LAN.with_total_order(), "NakAck4", {"capacity": 8_192}),
    "no copies for survivors": (LAN, "NakAck4", {"retain": False}),
    "no table for survivors": (presets.stable(), "NakAck3", {"discard_delivered": True}),
    "a smaller first majority": (LAN.insert(Majority(first=3)), "Majority", {"first": 1}),
}


@pytest.mark.parametrize(("spec", "name", "settings"), UNLIKE.values(), ids=UNLIKE)
def test_what_would_break_a_guarantee_is_refused(
    spec: StackSpec, name: str, settings: dict[str, object]
) -> None:
    """Each let such a member in, and then blocked the group, or broke what it promises."""
    world = World(seed=7, spec=spec)
    world.join("a", "b", "c")
    odd = world.start("d", spec.replace(name, **settings))
    world.run(seconds=5.0)
    assert odd.stack.closed is not None
    assert f"this member has {name}(" in odd.stack.closed


HARMLESS = {
    "bytes": ("NakAck4", {"max_bytes": 4_000_000, "flight_bytes": 1_000_000}),
    "windows": ("NakAck4", {"capacity": 512}),
    "acks": ("NakAck4", {"ack_threshold": 1, "xmit_interval": 0.3}),
    "unicast": ("Unicast", {"capacity": 256}),
    "bundles": ("Wire", {"mtu": 1_400}),
    "detection": ("FailureDetector", {"timeout": 5.0, "watchers": 1}),
    "views": ("Membership", {"gather": 0.1, "change_timeout": 3.0}),
}


@pytest.mark.parametrize(("name", "settings"), HARMLESS.values(), ids=HARMLESS)
def test_a_rolling_change_of_a_harmless_setting_works(
    name: str, settings: dict[str, object]
) -> None:
    """Members go one by one and come back with the new value, under load."""
    after = LAN.replace(name, **settings)
    world = World(seed=8, spec=LAN, loss=0.02)
    world.join("a", "b", "c")
    for leaver in "abc":
        for member in world.running:
            member.send([f"{member.name} {number}".encode().ljust(500) for number in range(300)])
        world.members[leaver].leave()
        world.run_until(lambda: world.united, 10.0)
        world.join(f"new {leaver}", spec=after)
    world.settle()
    assert world.check() == []
