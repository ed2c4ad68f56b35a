"""The state of members, for people."""

import pytest

from ringcast.runtime.ops.status_text import explanation, overview

STATUS: dict[str, object] = {
    "group": "chat",
    "name": "ann",
    "pid": 12,
    "endpoint": "127.0.0.1:7800",
    "view": "3@a1",
    "members": ["ann", "bob"],
    "peers": [{"address": "a1", "name": "ann"}, {"address": "b2", "name": "bob"}],
    "key_ids": ["3f", "07"],
    "peer_key_ids": {"b2": "07"},
    "counters": {"dropped_malformed": 1_234, "dropped_nothing": 0, "other": 3},
    "transport": {"dropped_queue_full": 1},
    "blocked_senders": [3.21],
    "waits_for": ["bob"],
    "failure": {"suspected": ["b2"]},
    "multicast": {
        "sent": {"low": 1_000, "high": 2_000, "nbytes": 500},
        "acks": {"a1": 2_000, "b2": 1_000},
        "windows": {
            "b2": {"low": 5, "delivered": 6, "handed": 7, "high": 12_345, "missing": 2, "nbytes": 9}
        },
    },
}


def test_a_member_that_waits() -> None:
    assert overview([STATUS]) == "\n".join(
        [
            "ann in chat, process 12 at 127.0.0.1:7800",
            "  closed group, key id 3f, also opens 07; sealed by another key: bob 07",
            "  view 3: ann, bob",
            "  sent 2,000 messages, 1,000 of them delivered by all; 500 bytes are held",
            "  not yet acked by: bob 1,000 (of 2,000)",
            "    from   known  handed  delivered  by all  missing  bytes",
            "    bob   12,345       7          6       5        2      9",
            "  BLOCKED: 1 send for 3.2 s; waits for bob",
            "  SUSPECTED: bob",
            "  dropped: malformed 1,234, queue_full 1",
        ]
    )


def test_members_that_are_well_or_silent() -> None:
    quiet = {"name": "a\x1bb", "group": "g", "pid": 1, "view": "1@a", "members": ["x"]}
    text = overview([quiet, {"pid": 7, "error": "no answer: timed out"}])
    assert text == "\n".join(
        [
            r"a\x1bb in g, process 1 at ",
            "  open group: any process may join",
            "  view 1: x",
            "",
            "process 7: no answer: timed out",
        ]
    )


@pytest.mark.parametrize(
    ("requested", "shown"), [(0, ["malformed 1"]), (5, ["malformed 1", "buffer_full 1,909"])]
)
def test_drops_that_healthy_groups_have_are_not_shown(requested: int, shown: list[str]) -> None:
    counters = {"dropped_wrong_group": 7, "dropped_malformed": 1, "requested": requested}
    transport = {"dropped_buffer_full": 1_909, "dropped_bytes": 299}
    status = {"name": "ann", "counters": counters, "transport": transport}
    assert f"  dropped: {', '.join(shown)}" in overview([status]).splitlines()
    explained = explanation([status])
    assert "  malformed (datagrams): " in explained
    assert "wrong_group" not in explained
    assert ("buffer_full" in explained) == (requested > 0)


def test_the_size_of_datagrams_and_what_the_kernel_offers() -> None:
    wire = {"datagram_bytes": 1_472, "datagram_source": "view"}
    kernel = {"segmentation": True, "coalescing": False, "dont_fragment": True}
    assert (
        "  datagrams of up to 1,472 bytes (the least of what the members take);"
        " segmentation offload; not fragmented"
    ) in overview([{**STATUS, "wire": wire, "kernel": kernel}]).splitlines()


def test_what_is_stable_and_the_members_that_have_not_voted() -> None:
    part = {"stable": {"a1": 1_000, "b2": 0}, "waits_for": ["b2"], "unstable": 1_200}
    lines = overview([{**STATUS, "stability": part}]).splitlines()
    assert "  stable: ann 1,000; 1,200 messages are not stable yet" in lines
    assert "  the round of stability waits for bob" in lines
