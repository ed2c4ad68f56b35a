"""The page of `ringcast ui` in a browser: what happens to a real group becomes visible.

RINGCAST_SCREENSHOT=docs/images/live-view.png makes the picture of the docs, with a slow member.
"""

import os
import signal
from pathlib import Path

import pytest

from ringcast import StackSpec
from tests.runtime.browser import BrowserPage, browser
from tests.runtime.command import Command, commands, run
from tests.runtime.members import Process, processes
from tests.runtime.namespaces import lan
from tests.runtime.support import SOON, SPECS, group_name, multicast
from tests.runtime.test_partition import stack

BLOCKED_SECONDS = 600
"""For how long the application of a slow member takes nothing: longer than the test."""


def spec_file(home: Path, spec: StackSpec) -> str:
    """The stack as a file for the command line."""
    path = home / "stack.toml"
    path.write_text(spec.to_toml())
    return str(path)


def served(
    running: list[Command], home: Path, group: str, spec: StackSpec, *wrapper: str
) -> tuple[str, str]:
    """Run `ringcast ui`: the name of the member that watches, and where the page is."""
    stack = ("--spec", spec_file(home, spec), "--page-port", "0", "--name", "eye")
    command = Command(home, "ui", group, *stack, wrapper=wrapper)
    running.append(command)
    return "eye", command.out.hear("http://").rpartition(" ")[2]


def told(what: str, seconds: float) -> None:
    """Print how long it took until something was seen, for people who run it with -s."""
    print(f"{what} was seen after {seconds:.1f} s")


def column(page: BrowserPage, title: str) -> list[str]:
    """What the table of members has under a heading."""
    script = f"""(() => {{
        const table = document.getElementById("members");
        const place = [...table.tHead.rows[0].cells].findIndex(c => c.innerText === "{title}");
        return [...table.tBodies[0].rows].map(row => row.cells[place].innerText);
    }})()"""
    found = page.evaluate(script)
    assert isinstance(found, list)
    return found


def test_a_join_a_recorder_a_slow_member_and_a_kill_are_seen_in_the_page(tmp_path: Path) -> None:
    picture = os.environ.get("RINGCAST_SCREENSHOT")
    with (
        processes("ann", "bob", group="prices" if picture else "") as (ann, bob),
        commands() as running,
        browser(tmp_path) as page,
    ):
        _, url = served(running, tmp_path, ann.group, multicast())
        page.open(url, width=1400, height=860)
        page.wait_for("members", "ann", "bob", "eye", "coordinator", bob_endpoint(bob))
        page.wait_for("history", "eye joined")
        page.wait_without("troubles", "waited")

        journal = ("--to", str(tmp_path / "journal"), "--spec", str(tmp_path / "stack.toml"))
        recorder = Command(tmp_path, "record", ann.group, *journal)
        running.append(recorder)
        recorder.err.hear("Recording ")
        told("a member that joined", page.wait_for("history", "recorder joined"))
        page.wait_for("members", ", recorder")
        ann.tell(send=1_000)
        page.evaluate("""[...document.querySelectorAll("#members tbody tr")]
            .find(row => row.innerText.startsWith("recorder")).click()""")
        page.wait_for("facts", "1,000 messages on disk")

        bob.tell(block=BLOCKED_SECONDS)
        ann.tell(flood=1_000)
        told("a slow member", page.wait_for("troubles", "ann has waited", "for bob"))
        if picture:
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(Path(picture))
        check_sorting_and_freezing(page)

        ann.tell(calm=True)
        bob.signal(signal.SIGKILL)
        told("a killed member", page.wait_for("history", "bob crashed or was cut off"))
        page.wait_without("members", "bob")
        page.wait_without("troubles", "waited")


def bob_endpoint(bob: Process) -> str:
    """Where bob is, as it says itself."""
    bob.tell(ask=True)
    stats = bob.hear("told")["stats"]
    assert isinstance(stats, dict)
    return str(stats["endpoint"])


def check_sorting_and_freezing(page: BrowserPage) -> None:
    """The group is stuck, and the page still does what it is asked for."""
    click = (
        """[...document.querySelectorAll("#members th")].find(c => c.innerText === "{}").click()"""
    )
    page.evaluate(click.format("member"))
    falling = column(page, "member")
    page.evaluate(click.format("member"))
    assert column(page, "member") == falling[::-1] == sorted(falling)
    page.evaluate("document.getElementById('freeze').click()")
    page.wait_for("state", "FROZEN")
    before = page.text("state")
    page.evaluate("document.getElementById('freeze').click()")
    assert "FROZEN" in before
    assert "FROZEN" not in page.text("state")


@pytest.mark.parametrize("kind", ["multicast"])
def test_a_partition_is_seen_in_the_page(tmp_path: Path, kind: str) -> None:
    group, started = group_name(), list[Process]()
    with lan(2) as network, commands() as running, browser(tmp_path, *network.sides[0]) as page:
        try:
            for side, name in ((0, "ann"), (0, "bob"), (1, "dan")):
                spec = stack(kind, side, None)
                started.append(Process(group, name, spec, *network.sides[side]))
                started[-1].hear("joined", 4 * SOON)
            _, url = served(running, tmp_path, group, stack(kind, 0, None), *network.sides[0])
            page.open(url)
            page.wait_for("members", "ann", "bob", "dan", "eye")
            network.cut(1)
            told("a partition", page.wait_for("history", "dan crashed or was cut off"))
            network.mend(1)
            page.wait_for("members", "dan")
            page.wait_for("history", "merged")
        finally:
            for process in started:
                process.end()


def test_the_page_of_a_closed_group_needs_its_key(tmp_path: Path) -> None:
    """Without the key `ringcast ui` joins nothing, and therefore shows nothing."""
    key = tmp_path / "key"
    assert run(tmp_path, "keygen", str(key))[0] == 0
    with commands() as running:
        spec = ("--spec", spec_file(tmp_path, SPECS["multicast"](None)))
        group = group_name()
        node = Command(tmp_path, "node", group, *spec, "--key-file", str(key))
        running.append(node)
        node.err.hear("joined ")
        alone = ("--when-alone", "wait", "--timeout", "1")
        watcher = Command(tmp_path, "ui", group, *spec, "--page-port", "0", *alone)
        running.append(watcher)
        assert watcher.status() != 0
        assert "key" in " ".join(watcher.err.rest())
