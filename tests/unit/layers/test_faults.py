"""Faults on purpose: about as many datagrams are lost as was asked for, repeatable from a seed."""

from random import Random

import pytest

from ringcast.core.model.address import Address, Peer
from ringcast.core.stack.env import Env
from ringcast.errors import ConfigError
from ringcast.layers.faults import Faults


def admitted(loss: float, seed: int, count: int = 10_000) -> tuple[list[bool], Env]:
    env = Env(Peer(Address(1), "a", ""), Random(seed))
    gate = Faults(loss=loss).build(env)
    return [gate.admit() for _ in range(count)], env


@pytest.mark.parametrize("loss", [0.01, 0.25, 0.9])
def test_about_as_many_are_lost_as_was_asked_for(loss: float) -> None:
    let_in, env = admitted(loss, seed=1)
    lost = let_in.count(False)
    assert abs(lost - 10_000 * loss) < 200
    assert env.counters["dropped_on_purpose"] == lost


def test_without_loss_all_are_let_in_and_no_dice_are_thrown() -> None:
    let_in, env = admitted(0.0, seed=1)
    assert all(let_in)
    assert env.rng.random() == Random(1).random()


def test_the_seed_decides_and_each_member_loses_for_itself() -> None:
    assert admitted(0.5, seed=1)[0] == admitted(0.5, seed=1)[0]
    assert admitted(0.5, seed=1)[0] != admitted(0.5, seed=2)[0]


@pytest.mark.parametrize("loss", [-0.1, 1.0, 2.0])
def test_a_chance_is_from_0_to_below_1(loss: float) -> None:
    with pytest.raises(ConfigError, match="loss"):
        Faults(loss=loss)
