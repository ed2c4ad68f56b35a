"""`ringcast top` and `ringcast ui`: lines for a terminal, made of what members have said."""

from collections.abc import Iterator

from ringcast.runtime.live.rows import MemberRow, empty_row
from ringcast.runtime.live.text import HEADINGS, SORTS, details_of, lines_of, ordered, size_text
from ringcast.runtime.live.troubles import troubles_of
from ringcast.runtime.live.watch import Snapshot


def member(name: str, **figures: object) -> MemberRow:
    row = empty_row(name, "a1", "10.0.0.1:7800")
    known: MemberRow = {**row, "age": 0.5, "view": 3, "role": "participant"}
    known.update(figures)  # type: ignore[typeddict-item]
    return known


def snapshot(*members: MemberRow) -> Snapshot:
    return {
        "group": "prices",
        "watched_by": "eve",
        "at": 0.0,
        "is_closed_group": True,
        "view": 3,
        "members": list(members),
        "troubles": troubles_of(members, "prices", "eve", 3),
        "history": [
            {"at": 0.0, "number": n, "members": [], "joined": [], "left": [], "why": f"why {n}"}
            for n in (1, 2, 3)
        ],
    }


def test_each_trouble_stands_behind_its_word() -> None:
    lines = list(lines_of(snapshot(member("ann", waits_for=["bob"], waits_seconds=3.24))))
    assert lines[2] == "WAITS    ann has waited 3.2 s for bob"
    assert lines[-3:] == [line for line in lines if "why " in line][:3]
    assert "view 3: why 3" in lines[-3]


def test_a_narrow_terminal_shows_a_trouble_to_its_end() -> None:
    whom = [f"a-member-with-a-long-name-{n}" for n in range(4)]
    stuck = snapshot(member("ann", waits_for=whom, waits_seconds=3.24))
    trouble = list(lines_of(stuck, width=60))[2:6]
    assert all(len(line) <= 60 for line in trouble)
    assert trouble[0].startswith("WAITS    ann has waited 3.2 s for a-member")
    assert trouble[-1].strip().endswith(whom[-1]) or whom[-1] in " ".join(trouble)


def test_a_healthy_group_says_so() -> None:
    lines = list(lines_of(snapshot(member("ann"), member("bob"))))
    assert "no member waits, is silent or drops anything" in lines
    assert "closed group" in lines[0]
    assert lines[4].split()[0] == HEADINGS[0]


def test_a_watcher_that_finds_no_other_member_says_so() -> None:
    lines = list(lines_of(snapshot(member("eve"))))
    assert "view 3, 1 member, closed group" in lines[0]
    assert lines[2].startswith("ALONE    no other member of prices: check the name")
    assert "ALONE" not in "".join(lines_of(snapshot(member("ann"))))


def test_members_that_need_attention_come_before_the_table() -> None:
    lines = list(lines_of(snapshot(member("ann", waits_for=["bob"]), member("bob"))))
    assert lines.index("WAITS    ann has waited 0.0 s for bob") < lines.index(
        next(line for line in lines if line.startswith(HEADINGS[0]))
    )


def test_a_narrow_terminal_has_the_most_important_columns() -> None:
    looked_at = snapshot(member("a-member-with-a-name"), member("bob"))
    for width in (60, 80, 120):
        table = [line for line in lines_of(looked_at, width=width) if line.startswith("member")]
        assert len(table[0]) <= width
        for title in ("rtt ms", "msg/s out", "window", "lag"):
            assert title in table[0]
    assert all(title in next(_headings(looked_at)) for title in HEADINGS)


def _headings(looked_at: Snapshot) -> Iterator[str]:
    return (line for line in lines_of(looked_at, width=400) if line.startswith("member"))


def test_a_low_terminal_says_how_many_members_are_left_out() -> None:
    lines = list(lines_of(snapshot(*(member(f"m{n}") for n in range(40))), members_max=5))
    assert "… and 35 more" in lines
    assert len(lines) < 20
    assert "… and" not in "\n".join(lines_of(snapshot(member("a")), members_max=1))


def test_members_are_sorted_and_names_cannot_control_the_terminal() -> None:
    few, many = member("\x1b[2J", bytes_out=1.0), member("b", bytes_out=5.0)
    assert ordered([few, many], "out") == [many, few]
    assert ordered([few, many], "seniority") == [few, many]
    for sort in SORTS:
        assert "\x1b" not in "\n".join(lines_of(snapshot(few, many), sort))
    assert "\x1b" not in "\n".join(details_of(few))


def test_sizes_in_the_live_view_have_units() -> None:
    assert [size_text(n) for n in (5, 1_500, 2e6, 3e9)] == ["5 B", "1.5 KB", "2.0 MB", "3.0 GB"]
