"""A newcomer gets the group's state, and what follows it: all of it, and nothing twice."""

import json
from random import Random

import pytest

from ringcast import presets
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.unicast.settings import Unicast
from ringcast.layers.wire import Wire
from ringcast.services.state_requester import Stage
from ringcast.sim import Member, World
from ringcast.spec import StackSpec
from tests.seeds import quick_first

WINDOW = 100_000
"""Bytes that may be under way to one member, in most of these tests."""

SMALL = presets.lan().replace(Unicast(max_bytes=WINDOW))

SPECS = {
    "lan": SMALL,
    "stable": presets.stable(),
    "datagrams": SMALL.replace(Wire(mtu=1_400)),
    "order": SMALL.with_total_order(),
    "windows": SMALL.replace(NakAck4(capacity=64), Unicast(capacity=16, max_bytes=WINDOW)),
}


class Diary:
    """An application: what it has been given of each sender, in order; its state is just that."""

    def __init__(self, member: Member, padding: int = 0) -> None:
        self.member = member
        self.padding = bytes(padding)
        self.given = 0
        """How many states it has made."""
        member.service.provide(self.provide)

    @property
    def pages(self) -> dict[str, list[str]]:
        """Sender → what it said: first the pages of the state, then what was delivered after it."""
        requester = self.member.service.correlator.requester
        state = None if requester is None else self.member.service.state
        pages: dict[str, list[str]] = {} if state is None else json.loads(state.rstrip(b"\0"))
        for message in self.member.delivered:
            text = bytes(message.payload).decode()
            pages.setdefault(str(message.sender), []).append(text)
        return pages

    def provide(self) -> list[bytes]:
        self.given += 1
        return [json.dumps(self.pages).encode(), self.padding]


def say(member: Member, count: int, label: str = "") -> None:
    member.send([f"{member.name}{label}-{number}".encode() for number in range(count)])


def newcomer(world: World, name: str) -> Diary:
    return Diary(world.start(name, state=True))


def has_state(diary: Diary) -> bool:
    return diary.member.service.stage is Stage.TAKEN


def check_equal(world: World, *diaries: Diary) -> None:
    world.settle()
    first = diaries[0].pages
    for diary in diaries[1:]:
        assert diary.pages == first
    assert world.check() == []


# What a newcomer gets -----------------------------------------------------------------------------


def test_a_newcomer_gets_the_state_and_then_the_messages() -> None:
    world = World(1, SMALL)
    a, b = world.join("a", "b")
    diary_a, diary_b = Diary(a), Diary(b)
    say(a, 10)
    say(b, 10)
    world.settle()
    diary_c = newcomer(world, "c")
    world.run_until(lambda: has_state(diary_c), 5.0)
    assert len(diary_c.member.delivered) == 0
    assert diary_c.pages == diary_a.pages
    say(a, 10, "later")
    check_equal(world, diary_a, diary_b, diary_c)
    assert len(diary_c.member.delivered) == 10
    assert (diary_a.given, diary_b.given) == (1, 0), "the most senior one was to give it"


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("seed", quick_first(range(25), 5))
def test_a_newcomer_under_load_ends_up_with_what_the_others_have(
    seed: int, loss: float, spec: StackSpec
) -> None:
    dice = Random(seed)
    world = World(seed, spec, loss=loss)
    diaries = [Diary(member, padding=dice.choice([0, 300_000])) for member in world.join("a", "b")]
    joined = 0
    for step in range(30):
        speaker = dice.choice(diaries).member
        say(speaker, dice.randrange(1, 40), str(step))
        if step % 10 == 5:
            joined += 1
            diaries.append(newcomer(world, f"n{joined}"))
        idler = dice.choice(diaries).member
        (idler.idle if idler.is_busy else idler.busy)()
        world.run(dice.uniform(0.0, 0.03))
    for diary in diaries:
        diary.member.idle()
    world.run_until(lambda: all(map(has_state, diaries[2:])), 60.0)
    say(diaries[-1].member, 5, "last")
    check_equal(world, *diaries)


def test_a_state_does_not_count_messages_that_wait_for_their_place_in_the_total_order() -> None:
    """The provider has received them and not delivered them: the newcomer gets them itself."""
    world = World(9, SMALL.with_total_order())
    a, b = world.join("a", "b")
    a.service.provide(lambda: None)
    provider = Diary(b)
    rule = world.drop(lambda f: f.kind == "DATA" and f.source == "a" and f.target == "b")
    diary = newcomer(world, "c")
    world.run_until(lambda: len(b.view or ()) == 3, 5.0)
    say(b, 5)
    world.run_until(lambda: has_state(diary), 5.0)
    assert len(b.delivered) == 0, "no order has reached the provider"
    rule.remove()
    check_equal(world, provider, diary)
    assert len(diary.pages[str(b.me)]) == 5


def test_two_newcomers_at_once_get_a_state_each() -> None:
    world = World(2, SMALL)
    a, b = world.join("a", "b")
    diaries = [Diary(a, padding=1_000_000), Diary(b)]
    say(a, 100)
    diaries += [newcomer(world, name) for name in "cdefgh"]
    world.run_until(lambda: all(map(has_state, diaries[2:])), 30.0)
    say(b, 100)
    check_equal(world, *diaries)


def test_nothing_waits_for_a_state_but_the_newcomer() -> None:
    world = World(3, SMALL)
    (a, b) = world.join("a", "b")
    diary = Diary(a, padding=10_000_000)
    late = newcomer(world, "c")
    late.member.service.reads = False
    world.run_until(lambda: late.member.service.stage is Stage.READING, 5.0)
    for _ in range(50):
        say(b, 1_000)
        world.run(0.05)
    assert len(a.delivered) == 50_000
    late.member.service.reads = True
    world.run_until(lambda: has_state(late), 30.0)
    assert diary.pages == late.pages


def test_a_large_state_takes_no_more_memory_than_a_window() -> None:
    world = World(4, SMALL)
    (a,) = world.join("a")
    made = 0

    def provide() -> object:
        nonlocal made
        for _ in range(2_000):
            made += 1
            yield bytes(50_000)

    a.service.provide(provide)  # type: ignore[arg-type]
    late = world.start("b", state=True)
    late.service.reads = False
    world.run(10.0)
    assert made * 50_000 <= 2 * WINDOW
    late.service.reads = True
    world.run_until(lambda: late.service.stage is Stage.TAKEN, 60.0)
    assert sum(map(len, late.service.pieces)) == 100_000_000


def test_messages_for_the_newcomer_alone_do_not_keep_the_state_from_coming() -> None:
    world = World(5, SMALL)
    (a,) = world.join("a")
    diary = Diary(a, padding=1_000_000)
    late = newcomer(world, "b")
    late.member.busy()
    world.run_until(lambda: late.member.me in (a.view or ()), 5.0)
    a.send([bytes(1_000)] * 50, to=late.member)
    world.run_until(lambda: has_state(late), 30.0)
    assert len(late.member.delivered) == 0
    late.member.idle()
    assert len([m for m in late.member.delivered if len(m.payload) == 1_000]) == 50
    assert diary.given == 1


# When there is none -------------------------------------------------------------------------------


def test_a_single_member_has_no_state_at_once() -> None:
    world = World(6, SMALL)
    first = world.start("a", state=True)
    world.run_until(lambda: first.view is not None, 5.0)
    assert first.service.stage is Stage.NONE
    assert len(first.views) == 1


def test_members_without_a_state_say_so() -> None:
    world = World(7, SMALL)
    world.join("a", "b")
    late = world.start("c", state=True)
    world.run_until(lambda: late.view is not None, 5.0)
    world.run(0.1)
    assert late.service.stage is Stage.NONE


def test_the_next_member_is_asked_when_one_has_none() -> None:
    world = World(8, SMALL)
    a, b, c = world.join("a", "b", "c")
    b.service.provide(lambda: None)
    diary = Diary(c)
    say(a, 3)
    late = newcomer(world, "d")
    world.run_until(lambda: has_state(late), 5.0)
    check_equal(world, diary, late)


def test_members_that_all_begin_at_once_have_no_state() -> None:
    world = World(9, SMALL)
    members = [world.start(name, state=True) for name in "abc"]
    for member in members:
        member.service.provide(lambda: [b""])
    world.run_until(lambda: world.united, 20.0)
    world.run(1.0)
    assert {member.service.stage for member in members} <= {Stage.NONE, Stage.TAKEN}


# Trouble ------------------------------------------------------------------------------------------


def test_a_provider_whose_application_is_busy_is_left_for_another() -> None:
    world = World(10, SMALL)
    a, b = world.join("a", "b")
    diary_a, diary_b = Diary(a), Diary(b)
    say(a, 10)
    world.settle()
    a.busy()
    late = newcomer(world, "c")
    world.run_until(lambda: has_state(late), 10.0)
    a.idle()
    check_equal(world, diary_a, diary_b, late)
    assert (diary_a.given, diary_b.given) == (0, 1)


@pytest.mark.parametrize("seed", quick_first(range(40), 10))
def test_a_provider_crashes_half_way_and_another_goes_on(seed: int) -> None:
    dice = Random(seed)
    world = World(seed, SMALL, loss=dice.choice([0.0, 0.1]))
    a, b, c = world.join("a", "b", "c")
    diaries = [Diary(member, padding=1_000_000) for member in (a, b, c)]
    say(b, 50)
    late = newcomer(world, "d")
    late.member.service.reads = False
    world.run_until(lambda: late.member.service.stage is Stage.READING, 20.0)
    for step in range(10):
        say(dice.choice([a, b, c]), dice.randrange(30), str(step))
        world.run(dice.uniform(0.0, 0.01))
    a.crash()
    late.member.service.reads = True
    for step in range(10):
        say(dice.choice([b, c]), dice.randrange(30), f"then{step}")
        world.run(dice.uniform(0.0, 0.5))
    world.run_until(lambda: has_state(late), 30.0)
    say(c, 5, "last")
    check_equal(world, diaries[1], diaries[2], late)
    assert late.member.service.attempts >= 2


@pytest.mark.parametrize("seed", range(60))
def test_what_only_a_crashed_provider_knew_is_in_no_state(seed: int) -> None:
    """The provider's state has messages of its own that no other member has when it crashes."""
    world = World(seed, SMALL)
    a, b = world.join("a", "b")
    diaries = [Diary(a), Diary(b)]
    say(b, 5)
    world.settle()
    rule = world.drop(lambda f: f.source == "a" and f.kind == "DATA")
    late = newcomer(world, "c")
    dice = Random(seed)
    world.run_until(lambda: late.member.view is not None, 10.0)
    say(a, 3, "secret")
    world.run(dice.uniform(0.0, 0.3))
    a.crash()
    rule.remove()
    world.run_until(lambda: has_state(late), 30.0)
    check_equal(world, diaries[1], late)


def test_a_state_that_is_lost_for_good_is_said_to_be_lost() -> None:
    world = World(11, SMALL)
    (a,) = world.join("a")
    Diary(a, padding=10_000_000)
    late = newcomer(world, "b")
    late.member.service.reads = False
    world.run_until(lambda: late.member.service.stage is Stage.READING, 5.0)
    a.crash()
    world.run_until(lambda: late.member.service.stage is Stage.FAILED, 10.0)
    requester = late.member.service.correlator.requester
    assert requester is not None
    assert requester.troubles == {a.me: "it is gone"}


def test_a_newcomer_that_crashes_is_not_sent_to_any_more() -> None:
    world = World(12, SMALL)
    (a,) = world.join("a")
    made = 0

    def provide() -> object:
        nonlocal made
        for _ in range(1_000_000):
            made += 1
            yield bytes(10_000)

    a.service.provide(provide)  # type: ignore[arg-type]
    late = world.start("b", state=True)
    world.run_until(lambda: late.service.stage is Stage.READING, 5.0)
    late.crash()
    world.run_until(lambda: not a.service.correlator.provider.active, 10.0)
    world.run(1.0)
    before = made
    world.run(10.0)
    assert made == before
    assert world.check() == []


@pytest.mark.parametrize("seed", range(20))
def test_a_newcomer_cut_off_with_its_provider_asks_among_those_it_still_has(seed: int) -> None:
    world = World(seed, SMALL)
    a, b, c = world.join("a", "b", "c")
    diaries = [Diary(member, padding=1_000_000) for member in (a, b, c)]
    say(a, 20)
    late = newcomer(world, "d")
    late.member.service.reads = False
    world.run_until(lambda: late.member.service.stage is Stage.READING, 20.0)
    world.partition([a], [b, c, late.member])
    late.member.service.reads = True
    world.run_until(lambda: has_state(late), 30.0)
    say(b, 5, "apart")
    world.run(1.0)
    assert late.pages == diaries[1].pages == diaries[2].pages
    assert world.check() == []
