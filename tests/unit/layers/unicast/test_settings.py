"""The settings of the unicast: values that cannot work are refused."""

import pytest

from ringcast.errors import ConfigError
from ringcast.layers.unicast.settings import Unicast


@pytest.mark.parametrize(
    "field",
    [
        *("capacity", "max_bytes", "ack_threshold", "request_ranges", "request_messages"),
        *("remembered_peers", "xmit_interval"),
    ],
)
def test_settings_below_their_bounds_are_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"Unicast.{field} is 0"):
        Unicast(**{field: 0})


def test_a_delay_above_the_interval_is_refused() -> None:
    with pytest.raises(ConfigError, match="request_delay"):
        Unicast(request_delay=0.2)
