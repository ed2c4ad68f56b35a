"""Conditions as texts: what is asked for, and a sentence for what cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.errors import ConfigError
from ringcast.journal.read.conditions_text import conditions_text, parse_conditions
from ringcast.journal.read.prune import ANY, Conditions

DAY_US = 86_400_000_000
TIMES = st.integers(-1_000 * DAY_US, 50_000 * DAY_US)
NUMBERS = st.integers(*ANY)


@pytest.mark.parametrize(
    ("options", "conditions"),
    [
        ({}, Conditions()),
        ({"path": "/a"}, Conditions()),
        ({"group": "prices, orders"}, Conditions().among("group", ["prices", "orders"])),
        ({"sender": "7,-8"}, Conditions().among("sender", [7, -8])),
        ({"seqno": "10..90"}, Conditions().within("seqno", (10, 90))),
        ({"seqno": "10"}, Conditions().within("seqno", (10, 10))),
        ({"seqno": " .. 90"}, Conditions().within("seqno", (ANY[0], 90))),
        ({"sent_at": "1970-01-02.."}, Conditions().within("sent_at", (DAY_US, ANY[1]))),
        (
            {"delivered_at": "1970-01-02T00:00:00+00:00..1970-01-02T02:00+01:00"},
            Conditions().within("delivered_at", (DAY_US, DAY_US + 3_600_000_000)),
        ),
    ],
)
def test_options_say_what_is_asked_for(options: dict[str, str], conditions: Conditions) -> None:
    assert parse_conditions(options) == conditions


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("group", text) for text in ("", "a,", ",")),
        *(("sender", text) for text in ("", "ann", "7,", "7..8", str(2**63), "9" * 5_000)),
        *(("seqno", text) for text in ("", "..", "9..8", "1..2..3", "1,2", "ten..")),
        *(("sent_at", text) for text in ("", "..", "now..", "1970-01-02..1970-01-01", "5")),
    ],
)
def test_a_wrong_value_is_told(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"the option {name} is '.*': give "):
        parse_conditions({name: text})


@given(
    st.sets(NUMBERS, min_size=1),
    st.tuples(NUMBERS, NUMBERS).map(sorted),
    st.tuples(TIMES, TIMES).map(sorted),
)
def test_texts_ask_for_the_same(senders: set[int], seqnos: list[int], times: list[int]) -> None:
    conditions = (
        Conditions()
        .among("group", ["prices"])
        .among("sender", senders)
        .within("seqno", (seqnos[0], seqnos[1]))
        .within("sent_at", (times[0], times[1]))
    )
    again = parse_conditions(conditions_text(conditions))
    assert (again.groups, again.senders) == (conditions.groups, conditions.senders)
    assert again.bounds == conditions.bounds


def test_what_options_cannot_say_is_left_out() -> None:
    asked = Conditions().among("group", ["a,b"]).among("sender", []).within("view", (1, 2))
    assert parse_conditions(conditions_text(asked)) == Conditions()
