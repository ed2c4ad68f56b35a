"""The old place of the simulated trace still works, and says where it is now."""

import pytest

from ringcast.sim.trace import SimulatedTrace
from ringcast.trace import simulated


def test_the_old_place_of_the_simulated_trace_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"import it from ringcast\.sim\.trace"):
        assert simulated.SimulatedTrace is SimulatedTrace
