"""`ringcast bench net` in short: the network is built, works as told, and leaves nothing behind."""

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from ringcast_bench.job import Missing
from ringcast_bench.net.bridge import MTU, Bridge, require, why_not
from ringcast_bench.net.run import run_row
from ringcast_bench.net.scenarios import CLEAN, LOSS
from ringcast_bench.scenarios import Row, Scenario
from tests.runtime.support import SOON


@pytest.fixture(autouse=True)
def _network_can_be_built() -> None:
    missing = why_not()
    if missing:
        pytest.skip(f"no bridge of namespaces can be built here: {missing}")


def short(scenario: Scenario) -> Scenario:
    return replace(scenario, quick=1)


def row_of(scenario: Scenario, who: str) -> Row:
    return next(row for row in scenario.rows if row.who == who)


@pytest.mark.parametrize(
    "who",
    ["raw, offload", "raw, one call per datagram", "raw, IP fragments", "raw, TCP", "ringcast"],
)
def test_messages_cross_the_bridge(who: str) -> None:
    sample = run_row(short(CLEAN), row_of(CLEAN, who), quick=True)
    assert not sample.failed
    assert sample.figures["rate"] > 0
    assert sample.figures["overhead"] > 0.99


def test_a_row_ends_in_time_however_much_is_lost() -> None:
    sample = run_row(short(LOSS), row_of(LOSS, "20 %"), quick=True)
    assert not sample.failed
    assert "rate" in sample.figures


def ping(bridge: Bridge, size: int) -> bool:
    """Whether a packet of this many bytes gets from one member to another, unfragmented."""
    script = (
        "import socket, sys\n"
        "sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "sock.setsockopt(socket.IPPROTO_IP, 10, 2)\n"  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
        "try: sock.sendto(bytes(int(sys.argv[1]) - 28), ('10.77.0.2', 9))\n"
        "except OSError: sys.exit(1)\n"
    )
    command = [*bridge.enter(0), sys.executable, "-c", script, str(size)]
    return subprocess.run(command, check=False, timeout=SOON).returncode == 0


def test_the_mtu_is_that_of_ethernet() -> None:
    with Bridge([MTU, MTU]) as bridge:
        before = bridge.sent()
        assert ping(bridge, MTU)
        assert bridge.sent() - before >= MTU
        assert not ping(bridge, MTU + 1)
        bridge.set_mtu(0, 1_300)
        assert not ping(bridge, 1_301)


HOLDER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored in a job of the background.
from ringcast_bench.net.bridge import Bridge
with Bridge([1500, 1500]) as bridge:
    print(*bridge.pids, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_is_interrupted(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        holders = [os.pidfd_open(int(pid)) for pid in process.stdout.readline().split()]
        assert len(holders) == 3
        process.send_signal(number)
        for holder in holders:  # The descriptor becomes readable when the process has ended.
            assert select.select([holder], [], [], SOON)[0]
            os.close(holder)


def test_a_tool_that_is_missing_is_named_with_its_package() -> None:
    with pytest.raises(Missing, match="no frobnicate here: install frob-tools"):
        require({"frobnicate": "frob-tools"})


def test_the_command_lists_its_scenarios_and_refuses_others() -> None:
    listed = bench("--list", "--json")
    assert {"clean", "loss", "link-200m", "fair", "bulk"} <= set(json.loads(listed.stdout))
    assert bench("--only", "nope").returncode == 2


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ringcast.cli.main", "bench", "net", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
