"""The fingerprint of a stack, and groups that refuse another."""

import pytest

from ringcast import presets
from ringcast.core.stack.fingerprint import difference, fingerprint
from ringcast.protocols import Compress, NakAck4
from ringcast.sim import World
from ringcast.spec import StackSpec

LAN = presets.lan()


def of(spec: StackSpec) -> str:
    return fingerprint(list(spec))


def test_what_a_member_may_have_for_itself_is_not_in_it() -> None:
    assert of(LAN) == "fragment=Fragment multicast=NakAck4 unicast=Unicast"
    assert of(presets.tcp(seeds=["a:1"])) == of(LAN)
    assert of(LAN.replace(NakAck4(capacity=3))) == of(LAN)


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
    ],
)
def test_the_difference_is_named(joiner: StackSpec, words: str) -> None:
    found = difference(of(LAN), of(joiner))
    assert words in found
    assert bool(found) is bool(words)


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
