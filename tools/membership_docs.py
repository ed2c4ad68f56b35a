"""Writes the table and the diagram of docs/membership.md from the membership's transitions.

python -m tools.membership_docs
"""

from collections.abc import Iterator
from pathlib import Path

from ringcast.control.membership.transitions import (
    COORDINATORS,
    FOLLOWERS,
    JOINERS,
    ROWS,
    Row,
    State,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "membership.md"
BEGIN = "<!-- made by tools/membership_docs.py: begin -->\n"
END = "<!-- made by tools/membership_docs.py: end -->\n"

GROUPS = {"newcomer": JOINERS, "follower": FOLLOWERS, "coordinator": COORDINATORS}


def updated(page: str) -> str:
    """The page with the generated part made anew."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + "\n".join(_lines()) + "\n" + END + after


def _lines() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {State.SEARCHING.value}"
    for group, states in GROUPS.items():
        yield f"    state {group} {{"
        yield from (f"        {state.value}" for state in states)
        yield "    }"
    for source, target, events in _edges():
        yield f"    {source} --> {target}: {events}"
    yield "```"
    yield ""
    yield "| state | meaning |"
    yield "| --- | --- |"
    for state in State:
        yield f"| {state.value} | {state.meaning} |"
    yield ""
    yield "| in the states | event | what the member does | may lead to |"
    yield "| --- | --- | --- | --- |"
    for row in ROWS:
        yield f"| {_names(row.states)} | {row.event} | {row.text} | {_names(row.leads_to)} |"


def _edges() -> list[tuple[str, str, str]]:
    """One edge per pair of states, in the order of the table, with its events."""
    events: dict[tuple[str, str], dict[str, None]] = {}
    for row in ROWS:
        for source, target in _moves(row):
            events.setdefault((source, target), {})[row.event] = None
    return [(source, target, ", ".join(names)) for (source, target), names in events.items()]


def _moves(row: Row) -> Iterator[tuple[str, str]]:
    """From each state; where the row holds for a whole group of states, from that."""
    whole = [name for name, states in GROUPS.items() if set(states) == set(row.states)]
    for source in whole or [state.value for state in row.states]:
        for target in row.leads_to:
            if target.value != source:
                yield source, target.value


def _names(states: tuple[State, ...]) -> str:
    return ", ".join(state.value for state in states)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
