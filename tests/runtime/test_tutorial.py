"""Each step of the tutorial does what the page says."""

import re
import signal
import sys
from pathlib import Path

import pytest

from tests.runtime.pages import LONG, run, running, wait_for
from tests.runtime.support import ROOT, group_name

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
PROGRAMS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
PRINTED = dict(re.findall(r"```\n\$ python (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = re.findall(r"^\$ (?:printf '(.*?)' \| )?(ringcast .*)$", PAGE, re.MULTILINE)


def command(start: str, group: str = "") -> list[str]:
    """The command of the page that begins like this, in a group of this test's own."""
    [found] = [words.split() for _, words in COMMANDS if words.startswith(start)]
    own = [group if group and word == "prices" else word for word in found[1:]]
    return [sys.executable, "-m", "ringcast", *own]


def test_the_chat_and_a_crash(tmp_path: Path) -> None:
    program, group = tmp_path / "chat.py", group_name()
    program.write_text(PROGRAMS["chat.py"].replace('"tutorial"', f'"{group}"'))
    with running([sys.executable, str(program), "ann"], tmp_path) as ann:
        wait_for(ann, "ann is here", "ann: hello from ann")
        with running([sys.executable, str(program), "bob"], tmp_path) as bob:
            wait_for(bob, "ann is here", "bob is here", "bob: hello from bob")
            wait_for(ann, "bob is here", "bob: hello from bob")
            assert "`ringcast node tutorial --name cat`" in PAGE
            node = [sys.executable, "-m", "ringcast", "node", group, "--name", "cat"]
            run(node, tmp_path, "hello from a terminal\n")
            for member in (ann, bob):
                wait_for(member, "cat is here", "cat: hello from a terminal", "cat is gone")
            bob.kill()
            wait_for(ann, "bob is gone")


@pytest.mark.parametrize("name", ["loss.py", "crash.py", "partition.py", "order.py"])
def test_the_simulated_steps_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    assert run([sys.executable, "-c", PROGRAMS[name]], tmp_path) == PRINTED[name]


def test_the_journal_holds_what_was_sent(tmp_path: Path) -> None:
    group = group_name()
    [text] = [text for text, words in COMMANDS if text and words.startswith("ringcast node")]
    with running(command("ringcast record", group), tmp_path) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline().startswith("Recording")
        run(command("ringcast node", group), tmp_path, text.replace("\\n", "\n"))
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(LONG) == 0
    assert run([sys.executable, "-c", PROGRAMS["replay.py"]], tmp_path) == PRINTED["replay.py"]


@pytest.mark.spark
def test_the_audit_of_the_last_step_is_clean(tmp_path: Path) -> None:
    run(command("ringcast sim"), tmp_path)
    verdict = "CLEAN: every guarantee held"
    assert f"```\n{verdict}\n```" in PAGE
    assert verdict in run(command("ringcast audit"), tmp_path)
    assert (tmp_path / "report.html").exists()
