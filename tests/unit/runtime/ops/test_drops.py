"""Which drops are shown to people."""

import pytest

from ringcast.runtime.ops.drops import is_alarm


@pytest.mark.parametrize(
    ("reason", "misses", "expected"),
    [
        ("malformed", False, True),
        ("wrong_group", True, False),
        ("bytes", True, False),
        ("buffer_full", False, False),
        ("buffer_full", True, True),
    ],
)
def test_what_healthy_groups_drop_is_no_alarm(reason: str, misses: bool, expected: bool) -> None:
    assert is_alarm(reason, misses) == expected
