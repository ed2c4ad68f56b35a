"""The register of counters: every one that the code raises is declared, and the docs list it."""

import re
from pathlib import Path

import pytest

from ringcast import errors, protocols
from ringcast.core.stack.counters import Declared, all_declared, declare, declared
from ringcast.errors import ConfigError, RemoteError

ROOT = Path(__file__).resolve().parents[4]
RAISED = re.compile(r'(?:counters\[f?|= declare\()"([^"{]+)')


def raised() -> set[str]:
    texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    return {name for text in texts for name in RAISED.findall(text)}


def own() -> list[Declared]:
    """Those of the package: other tests may have imported an example that declares its own."""
    texts = [path.read_text() for path in (ROOT / "examples").rglob("*.py")]
    others = {name for text in texts for name in re.findall(r'declare\("([^"]+)', text)}
    assert "seal_broken" in others
    return [counter for counter in all_declared() if counter.name not in others]


def test_every_counter_is_declared() -> None:
    prefixes = {"dropped_", "dropped_send_", "receive_", "reported_"}
    assert sorted(n for n in raised() - prefixes if declared(n) is None) == []
    reasons = [e.reason for e in vars(errors).values() if _is_remote(e)]
    assert [r for r in reasons if declared(f"dropped_{r}") is None] == []


def test_protocols_declare_their_own() -> None:
    assert "Compress" in protocols.names()
    assert declared("dropped_unpackable") is not None


def test_every_declared_counter_is_raised() -> None:
    reasons = {f"dropped_{e.reason}" for e in vars(errors).values() if _is_remote(e)}
    named = raised() | reasons | {"dropped_buffer_full"}
    assert sorted(c.name for c in own() if c.name.rstrip("*") not in named) == []


def test_the_docs_list_every_counter() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    rows = [f"| `{c.name}` | {c.unit} | {c.about} |" for c in own()]
    assert [row for row in rows if row not in text] == []


def test_a_counter_is_declared_once() -> None:
    assert declare("resent", *declared("resent")[1:]) == "resent"  # type: ignore[index]
    with pytest.raises(ConfigError, match="there is a counter resent"):
        declare("resent", "apples", "Apples.")


def _is_remote(error: object) -> bool:
    return isinstance(error, type) and issubclass(error, RemoteError)
