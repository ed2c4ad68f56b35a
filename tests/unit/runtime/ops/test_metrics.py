"""The text that Prometheus reads."""

import re

from ringcast.runtime.ops.metrics import render

STATUS: dict[str, object] = {
    "group": 'g"1\\',
    "name": "ann",
    "view": "3@a1",
    "members": ["ann", "bob"],
    "peers": [
        {"address": "a1", "name": "ann", "endpoint": "127.0.0.1:1"},
        {"address": "b2", "name": "bob", "endpoint": "127.0.0.1:2"},
    ],
    "counters": {"dropped_malformed": 7, "odd-name": 1},
    "transport": {"sent_bytes": 5, "receive_buffer": 100},
    "blocked_senders": [1.5, 0.25],
    "waits_for": ["bob"],
    "multicast": {
        "sent": {"low": 1, "delivered": 2, "high": 9, "nbytes": 70},
        "windows": {"b2": {"low": 4, "missing": 2}, "c3": {"low": 0}},
        "acks": {"b2": 1},
    },
    "unicast": {"to": {"b2": {"high": 3}}, "from": {"b2": {"handed": 2}}},
    "flow": {"credits": 4_000},
    "membership": {"role": "coordinator", "suspects": []},
    "failure": {"suspected": ["b2"]},
    "closed": None,
}
OWN = r'group="g\"1\\",member="ann"'


def test_metrics_have_the_figures_of_every_role() -> None:
    lines = render(STATUS).splitlines()
    for expected in (
        f"ringcast_members{{{OWN}}} 2",
        f"ringcast_view_number{{{OWN}}} 3",
        f"ringcast_blocked_senders{{{OWN}}} 2",
        f"ringcast_blocked_seconds{{{OWN}}} 1.5",
        f'ringcast_waits_for{{{OWN},peer="bob"}} 1',
        f"ringcast_sent_bytes{{{OWN}}} 70",
        f'ringcast_window_missing{{{OWN},sender="bob"}} 2',
        f'ringcast_window_low{{{OWN},sender="c3"}} 0',
        f'ringcast_acked{{{OWN},peer="bob"}} 1',
        f'ringcast_unicast_sent_high{{{OWN},peer="bob"}} 3',
        f'ringcast_unicast_window_handed{{{OWN},sender="bob"}} 2',
        f"ringcast_credits{{{OWN}}} 4000",
        f"ringcast_is_coordinator{{{OWN}}} 1",
        f'ringcast_suspected{{{OWN},peer="bob"}} 1',
        f"ringcast_dropped_malformed_total{{{OWN}}} 7",
        f"ringcast_odd_name_total{{{OWN}}} 1",
        f"ringcast_transport_sent_bytes_total{{{OWN}}} 5",
        f"ringcast_transport_receive_buffer{{{OWN}}} 100",
        "# TYPE ringcast_transport_receive_buffer gauge",
        "# TYPE ringcast_dropped_malformed_total counter",
        "# HELP ringcast_dropped_malformed_total Datagrams that cannot be parsed. In datagrams.",
        "# HELP ringcast_window_low The messages of one sender: delivered by all up to here.",
    ):
        assert expected in lines


def test_several_members_share_each_heading() -> None:
    text = render(STATUS, {**STATUS, "name": "bob"})
    assert text.endswith("\n")
    headings = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(headings) == len(set(headings))
    families = [re.split(r"[ {]", line)[0] for line in text.splitlines() if line[0] != "#"]
    firsts = [name for at, name in enumerate(families) if at == 0 or families[at - 1] != name]
    assert len(firsts) == len(set(firsts)), "samples of one metric stand together"


def test_nobody_waits_when_nobody_is_blocked() -> None:
    text = render({**STATUS, "blocked_senders": []})
    assert "ringcast_waits_for" not in text
    assert f"ringcast_blocked_seconds{{{OWN}}} 0\n" in text


def test_what_is_not_what_it_should_be_is_left_out() -> None:
    assert render() == ""
    odd = render({"view": None, "members": 3, "peers": [1], "transport": [], "x": {"acks": 1}})
    assert 'ringcast_members{group="",member=""} 0' in odd


def test_members_of_one_name_have_series_of_their_own() -> None:
    peers = [{"address": a, "name": "bob", "endpoint": "127.0.0.1:1"} for a in ("b1", "b2")]
    windows = {"b1": {"low": 4}, "b2": {"low": 5}}
    status = {
        **STATUS,
        "peers": peers,
        "multicast": {"windows": windows},
        "waits_for": ["bob", "bob"],
        "failure": {"suspected": ["b1", "b2"]},
    }
    samples = [line.rpartition(" ")[0] for line in render(status).splitlines() if line[0] != "#"]
    assert sorted(set(samples)) == sorted(samples)
    assert f'ringcast_window_low{{{OWN},sender="bob@b1"}}' in samples
    text = render({**STATUS, "me": "a1"}, {**STATUS, "me": "a2"})
    assert 'member="ann@a1"' in text
    assert 'member="ann@a2"' in text
