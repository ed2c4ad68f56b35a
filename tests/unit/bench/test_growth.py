"""The cost of control in larger groups: one line per size."""

import pytest

from ringcast_bench import growth


def test_there_is_one_line_per_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SIZES", (5, 6))
    head, *lines = growth.growth()
    assert "frames/delivered" in head
    assert [line.split()[0] for line in lines] == ["5", "6"]
