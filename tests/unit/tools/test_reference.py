"""What the generated pages say of a class."""

import pytest

from ringcast import Batch, Group, Outcome, View
from tools.reference.api import _members, page


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (View, {"id", "peers", "members", "coordinator"}),
        (Batch, {"sender", "first", "payloads", "sent_at", "last"}),
        (Outcome, {outcome.name for outcome in Outcome}),
    ],
)
def test_attributes_and_choices_are_listed(kind: type, names: set[str]) -> None:
    assert {f"`{name}`" for name in names} <= {name for name, _ in _members(kind)}


def test_what_ringcast_itself_calls_is_not_listed() -> None:
    assert not any("on_fork" in name for name, _ in _members(Group))


def test_types_of_fields_have_their_names() -> None:
    assert "Message(sender: Address, seqno: int, payload: bytes)" in page()
    assert "ForwardRef" not in page()
