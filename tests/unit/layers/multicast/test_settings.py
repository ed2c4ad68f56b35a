"""Settings of a reliable multicast that cannot work are refused, and those at the bound are not."""

from dataclasses import replace

import pytest

from ringcast.errors import ConfigError
from ringcast.layers.multicast.nakack3 import NakAck3
from ringcast.layers.multicast.nakack4 import NakAck4
from ringcast.layers.multicast.settings import MulticastSpec

COUNTS = ("capacity", "max_bytes", "request_ranges", "request_messages")


SETTINGS = [(spec, name) for spec in (NakAck3(), NakAck4()) for name in COUNTS]
SETTINGS += [(NakAck4(), "ack_threshold"), (NakAck4(), "flight_bytes")]


def changed(spec: MulticastSpec, name: str, value: int) -> MulticastSpec:
    return replace(spec, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("spec", "name"), SETTINGS)
def test_one_is_enough_and_nothing_is_not(spec: MulticastSpec, name: str) -> None:
    assert getattr(changed(spec, name, 1), name) == 1
    with pytest.raises(ConfigError, match=f"{type(spec).__name__}.{name} is 0: give at least 1"):
        changed(spec, name, 0)


def test_a_request_waits_no_longer_than_the_interval() -> None:
    assert NakAck4(xmit_interval=0.1, request_delay=0.1).request_delay == 0.1
    assert NakAck4(request_delay=0).request_delay == 0
    for delay in (0.2, -0.1):
        with pytest.raises(ConfigError, match=f"request_delay is {delay}: give 0 up to"):
            NakAck4(xmit_interval=0.1, request_delay=delay)


def test_an_interval_is_above_0() -> None:
    with pytest.raises(ConfigError, match="xmit_interval is 0: give seconds above 0"):
        NakAck4(xmit_interval=0, request_delay=0)


def test_no_frame_need_be_parked() -> None:
    assert NakAck4(early_frames=0).early_frames == 0
    with pytest.raises(ConfigError, match="early_frames is -1: give 0 or more"):
        NakAck4(early_frames=-1)


def test_block_times_are_read_when_the_settings_are_made() -> None:
    with pytest.raises(ConfigError, match="max_block_times"):
        NakAck4(max_block_times="soon")
    with pytest.raises(ConfigError, match='answer is "both"'):
        NakAck4(answer="both")
