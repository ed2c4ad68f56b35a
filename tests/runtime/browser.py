"""Chromium without a window, driven by the DevTools protocol over a pair of pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # The page is our own, and root has no sandbox.
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
)
SECONDS = 60.0
"""A browser on a busy machine takes long to start; it counts as broken after this."""
LAUNCH = """
import os, sys
read, write = int(sys.argv[1]), int(sys.argv[2])
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]  # No copy is 3 or 4.
copies = os.dup(read), os.dup(write)
os.dup2(copies[0], 3)
os.dup2(copies[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Gives the browser its pipes as the descriptors 3 and 4."""


class BrowserPage:
    """One page of a browser."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._kept = read, write, b""
        self._id, self._session = 0, ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = str(attached["sessionId"])

    def open(self, url: str, width: int = 1280, height: int = 800) -> None:
        """Go to an address."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        self._ask("Page.navigate", url=url)

    def evaluate(self, expression: str) -> object:
        """What an expression is in the page, as JSON carries it."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result.get("value")

    def text(self, id: str) -> str:
        """The text of the element with this id; empty while there is none."""
        return str(self.evaluate(f"document.getElementById({json.dumps(id)})?.innerText ?? ''"))

    def wait_for(self, id: str, *words: str) -> float:
        """Wait until the element has all of these words; how many seconds that took."""
        return self._wait(id, lambda text: all(word in text for word in words), words)

    def wait_without(self, id: str, word: str) -> float:
        """Wait until the element does not have this word; how many seconds that took."""
        return self._wait(id, lambda text: word not in text, f"not {word}")

    def _wait(self, id: str, is_so: Callable[[str], bool], wanted: object) -> float:
        began = time.monotonic()
        while not is_so(text := self.text(id)):
            waited = time.monotonic() - began
            assert waited < SECONDS, f"{id} is {text!r}, and not {wanted}"
            select.select([], [], [], 0.05)
        return time.monotonic() - began

    def screenshot(self, path: Path) -> None:
        """Write what is to be seen as PNG."""
        shot = self._ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(str(shot["data"])))

    def _ask(self, method: str, **parameters: object) -> dict[str, object]:
        """Send a command; its result, once it has come."""
        self._id += 1
        command = {"id": self._id, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            message = self._next(until)
            if message.get("id") == self._id:
                assert "error" not in message, message
                result = message["result"]
                assert isinstance(result, dict)
                return result

    def _next(self, until: float) -> dict[str, object]:
        """The next message, event or result."""
        while b"\0" not in self._kept:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            came = os.read(self._read, 1 << 16)
            assert came, "the browser has ended"
            self._kept += came
        line, _, self._kept = self._kept.partition(b"\0")
        message: dict[str, object] = json.loads(line)
        return message


@contextmanager
def browser(home: Path, *wrapper: str) -> Iterator[BrowserPage]:
    """A browser that keeps its files in `home`; skips where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a browser: {', '.join(NAMES)}")
    commands, answers = os.pipe(), os.pipe()
    process = subprocess.Popen(
        [
            *(*wrapper, sys.executable, "-c", LAUNCH, str(commands[0]), str(answers[1])),
            *(found, *FLAGS, f"--user-data-dir={home / 'browser'}", "about:blank"),
        ],
        pass_fds=(commands[0], answers[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TZ": "UTC"},
    )
    os.close(commands[0])
    os.close(answers[1])
    try:
        yield BrowserPage(answers[0], commands[1])
    finally:
        # It ends itself, and all its processes, when its pipe is closed.
        os.close(commands[1])
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(answers[0])
