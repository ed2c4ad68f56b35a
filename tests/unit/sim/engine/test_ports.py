"""Ports of the switch: rates, queues that drop, and paths that members share."""

import pytest

from ringcast.errors import ConfigError
from ringcast.sim.engine.ports import SEND_BUFFER, Port, Switch


def test_an_uplink_makes_datagrams_wait_and_its_queue_is_bounded() -> None:
    switch = Switch(bandwidth=1000.0)
    assert switch.sent("a", 500, 0.0) == 0.5
    assert switch.sent("a", 500, 0.0) == 1.0
    assert switch.sent("b", 500, 0.0) == 0.5, "every member has an uplink of its own"
    assert switch.sent("a", SEND_BUFFER + 1000, 0.0) is not None
    assert switch.sent("a", 1, 0.0) is None


def test_a_queue_in_bytes_drops_what_does_not_fit_and_empties_with_time() -> None:
    switch = Switch(bandwidth=1000.0, queue=1000)
    assert switch.sent("a", 600, 0.0) == 0.6
    assert switch.sent("a", 600, 0.0) is None
    assert switch.sent("a", 400, 0.0) == 1.0
    assert switch.sent("a", 600, 0.6) == 1.6


def test_the_shared_link_is_one_for_all_senders_and_a_downlink_one_for_each_receiver() -> None:
    switch = Switch(shared=1000.0, downlink=500.0)
    assert switch.sent("a", 100, 0.0) == pytest.approx(0.1)
    assert switch.sent("b", 100, 0.0) == pytest.approx(0.2)
    assert switch.received("c", 100, 0.1, 0.0) == pytest.approx(0.3)
    assert switch.received("c", 100, 0.2, 0.0) == pytest.approx(0.5)
    assert switch.received("d", 100, 0.2, 0.0) == pytest.approx(0.4)


def test_one_receiver_may_have_a_narrow_downlink() -> None:
    switch = Switch()
    switch.set_downlink("b", 100.0)
    assert switch.received("b", 100, 0.0, 0.0) == 1.0
    assert switch.received("c", 100, 0.0, 0.0) == 0.0
    switch.open()
    assert switch.received("b", 100, 0.0, 0.0) == 0.0


def test_a_datagram_that_reaches_a_port_first_leaves_it_first_if_it_fits() -> None:
    port = Port()
    assert port.departure(100, 5.0, 0.0, 100.0, None) == 6.0
    assert port.departure(100, 1.0, 0.0, 100.0, None) == 2.0
    assert port.departure(400, 1.0, 0.0, 100.0, None) == 10.0, "it does not fit between them"
    assert port.departure(100, 11.0, 10.5, 100.0, None) == 12.0


def test_a_rate_that_changes_counts_for_what_is_sent_after_it() -> None:
    switch = Switch(bandwidth=1000.0)
    assert switch.sent("a", 1000, 0.0) == 1.0
    switch.bandwidth = 100.0
    assert switch.sent("a", 100, 0.0) == 2.0


@pytest.mark.parametrize("name", ["bandwidth", "downlink", "shared", "queue"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Switch(**{name: 0})
