"""What needs attention, in a group of any size."""

from ringcast.runtime.live.rows import MemberRow, empty_row
from ringcast.runtime.live.troubles import NAMES_MAX, duration_text, listed, troubles_of


def member(name: str, **figures: object) -> MemberRow:
    row = empty_row(name, "a1", "10.0.0.1:7800")
    known: MemberRow = {**row, "age": 0.5, "view": 3, "role": "participant"}
    known.update(figures)  # type: ignore[typeddict-item]
    return known


def told(*rows: MemberRow) -> list[str]:
    found = troubles_of(rows, "prices", "eye", 3)
    return [f"{trouble['kind']}: {trouble['text']}" for trouble in found]


def test_every_trouble_is_told_the_most_urgent_first() -> None:
    never = {**empty_row("fay", "f", "x:1"), "silent_seconds": 4.0}
    assert told(
        member("dan", view=2, suspects=["bob"], rising_drops={"malformed": 12.0}),
        member("bob", age=9.0, silent_seconds=9.0, view=2),
        member("ann", waits_for=["bob"], waits_seconds=3.24),
        never,  # type: ignore[arg-type]
    ) == [
        "waits: ann has waited 3.2 s for bob",
        "silent: bob has not answered for 9.0 s",
        "silent: fay has not answered yet, asked 4.0 s ago",
        "suspects: dan suspects bob",
        "apart: dan is in view 2, not 3",
        "drops: dan drops malformed: 12 per second (datagrams that cannot be parsed)",
    ]


def test_a_member_that_has_just_joined_is_no_trouble() -> None:
    assert told(member("ann"), empty_row("fay", "f", "x:1")) == []


def test_a_sender_that_waits_for_a_view_or_a_majority_is_told_with_the_reason() -> None:
    blocked = member("ann", blocked_by="a view is being made", waits_seconds=2.5)
    assert told(blocked) == ["waits: ann has waited 2.5 s: a view is being made"]
    both = member("ann", waits_for=["bob"], blocked_by="no majority", waits_seconds=75.0)
    assert told(both) == ["waits: ann has waited 1m 15s: no majority"]


def test_members_with_one_trouble_share_a_sentence() -> None:
    waiting = [member(f"m{n}", waits_for=["slow"], waits_seconds=float(n)) for n in range(19)]
    silent = [member(f"s{n}", age=5.0, silent_seconds=5.0) for n in range(3)]
    assert told(*waiting, *silent) == [
        "waits: m18, m17, m16, m15 and 15 more have waited up to 18.0 s for slow",
        "silent: s0, s1, s2 have not answered for up to 5.0 s",
    ]
    suspecting = [member(n, suspects=["x"], view=2) for n in ("a", "b")]
    assert told(*suspecting) == ["suspects: a, b suspect x", "apart: a, b are in view 2, not 3"]
    dropping = [member(n, rising_drops={"odd": 2.0}) for n in ("a", "b")]
    assert told(*dropping) == ["drops: a, b drop odd: 4 per second"]


def test_a_watcher_that_finds_no_other_member_says_so() -> None:
    (alone,) = told(member("eye"))
    assert alone.startswith("alone: no other member of prices: check the name")


def test_long_lists_of_names_end_with_their_number() -> None:
    names = [f"m{n}" for n in range(9)]
    assert listed(names[:NAMES_MAX]) == "m0, m1, m2, m3, m4"
    assert listed(names) == "m0, m1, m2, m3 and 5 more"


def test_durations_have_two_units() -> None:
    durations = [duration_text(n) for n in (0.4, 59, 60, 5_400, 86_399, 90_000)]
    assert durations == ["0s", "59s", "1m 0s", "1h 30m", "23h 59m", "1d 1h"]
