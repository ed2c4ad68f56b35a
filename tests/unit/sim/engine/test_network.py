"""Links: what arrives, when, and what becomes of the rest."""

from random import Random

import pytest

from ringcast.core.model.address import Address
from ringcast.core.model.ranges import RangeSet
from ringcast.core.wire.codec import decode, encode, group_id
from ringcast.core.wire.frames import Ack, Alive, Frame, Nak
from ringcast.errors import ConfigError, LocalError, RemoteError
from ringcast.sim.engine.faults import Drop, FrameInFlight, Parcel, Partitions, spoil
from ringcast.sim.engine.network import Link, Network
from ringcast.sim.engine.ports import Switch

GROUP = group_id("g")


def parcel(*frames: Frame) -> Parcel:
    return Parcel(1, "a", GROUP, b"".join(encode(GROUP, Address(1), list(frames) or [Alive()])))


def network(**settings: object) -> Network:
    link = Link(delay=(0.001, 0.002))
    for name, value in settings.items():
        setattr(link, name, value)
    return Network(Random(1), link, Switch())


def times(net: Network, count: int, target: str = "b") -> list[float]:
    fates = [
        net.carry(parcel(), target, number * 0.0001, number * 0.0001) for number in range(count)
    ]
    return [arrival.time for fate in fates for arrival in fate.arrivals]


def test_a_link_keeps_order_and_its_bounds() -> None:
    arrived = times(network(), 200)
    assert arrived == sorted(arrived)
    for number, time in enumerate(arrived):
        assert 0.001 <= time - number * 0.0001 <= 0.002 + 1e-9


def test_loss_duplicates_and_reordering_have_their_chances() -> None:
    assert 400 < len(times(network(loss=0.5), 1000)) < 600
    assert 1400 < len(times(network(duplicate=0.5), 1000)) < 1600
    held = times(network(reorder=0.2), 1000)
    assert held != sorted(held)
    assert len(held) == 1000


def test_a_datagram_of_many_packets_is_lost_more_often() -> None:
    small, large = network(packet_loss=0.1), network(packet_loss=0.1, mtu=10)
    data = len(parcel().data)
    assert 0.9 - 0.05 < len(times(small, 1000)) / 1000 < 0.9 + 0.05
    expected = 0.9 ** -(-data // 10)
    assert expected - 0.05 < len(times(large, 1000)) / 1000 < expected + 0.05


def test_where_nothing_is_fragmented_a_datagram_above_the_mtu_vanishes() -> None:
    net = network(mtu=10)
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == ""
    net.fragment = False
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == "too large"
    net.link("a", "b").mtu = 1_500
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == ""


def test_a_full_downlink_loses_what_its_receiver_is_sent_and_nothing_else() -> None:
    net = network()
    net.switch.queue = len(parcel().data)
    net.switch.set_downlink("b", 1_000.0)
    reasons = [net.carry(parcel(), name, 0.0, 0.0).reason for name in ("b", "b", "c", "c")]
    assert reasons == ["", "queue full", "", ""]


def test_a_partition_cuts_off_members_of_another_side() -> None:
    net = network()
    net.partitions.split([["a"], ["b"]])
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == "cut off"
    assert net.carry(parcel(), "a", 0.0, 0.0).reason == ""
    net.partitions.heal()
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == ""
    with pytest.raises(LocalError, match="two sides"):
        Partitions().split([["a"], ["a"]])


def test_one_link_can_be_set_apart() -> None:
    net = network()
    net.link("a", "b").loss = 1.0
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == "lost"
    assert net.carry(parcel(), "c", 0.0, 0.0).reason == ""


def test_multicast_may_end_on_a_link_that_unicast_passes() -> None:
    net = network()
    net.link("a", "b").multicast_loss = 1.0
    to_all = Parcel(1, "a", GROUP, parcel().data, is_multicast=True)
    assert net.carry(to_all, "b", 0.0, 0.0).reason == "lost"
    assert net.carry(to_all, "c", 0.0, 0.0).reason == ""
    assert net.carry(parcel(), "b", 0.0, 0.0).reason == ""


@pytest.mark.parametrize(
    ("name", "value"), [("loss", 1.5), ("loss", -0.1), ("delay", (2, 1)), ("delay", "x")]
)
def test_settings_that_make_no_sense_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        setattr(Link(), name, value)


def test_a_rule_takes_frames_out_and_lets_the_rest_pass() -> None:
    net = network()
    rule = Drop(lambda f: f.kind == "NAK" and 5 in f.seqnos and f.target == "b", net.rules)
    sent = parcel(Ack(7), Nak(Address(1), RangeSet([(4, 6)])), Alive())
    fate = net.carry(sent, "b", 0.0, 0.0)
    assert fate.reason == "dropped"
    assert decode(fate.arrivals[0].data, GROUP) == (Address(1), [Ack(7), Alive()])
    assert net.carry(sent, "c", 0.0, 0.0).arrivals[0].data is sent.data
    assert rule.count == 1
    rule.remove()
    assert net.carry(sent, "b", 0.0, 0.0).arrivals[0].data is sent.data


def test_a_datagram_of_which_nothing_is_left_does_not_arrive() -> None:
    net = network()
    Drop(lambda f: True, net.rules)
    assert net.carry(parcel(Ack(7)), "b", 0.0, 0.0).arrivals == ()


def test_a_rule_sees_names_kind_and_seqnos() -> None:
    net, seen = network(), list[FrameInFlight]()

    def look(frame: FrameInFlight) -> bool:
        seen.append(frame)
        return False

    Drop(look, net.rules)
    net.carry(parcel(Ack(7)), "b", 0.0, 0.0)
    assert [(f.source, f.target, f.kind, 7 in f.seqnos, f.frame) for f in seen] == [
        ("a", "b", "ACK", True, Ack(7))
    ]


def test_damage_is_always_seen() -> None:
    rng, data = Random(3), parcel(Ack(7), Alive()).data
    for _ in range(500):
        spoilt = spoil(data, GROUP, rng)
        assert spoilt is not None
        assert spoilt != data
        with pytest.raises(RemoteError):
            decode(spoilt, GROUP)
