"""A discovery method of a user's own: one class and one registration."""

import contextlib
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ringcast import presets, sync
from ringcast.control.discovery import Discovery, Sighting
from ringcast.core.model.address import Address, Peer
from ringcast.errors import ConfigError
from ringcast.runtime.discovery import method
from ringcast.runtime.discovery.method import Searcher, chosen_methods, register_discovery


class ListFile:
    """Reads endpoints from a file, one per line."""

    pause = 0.05

    def __init__(self, path: str, searcher: Searcher) -> None:
        self._path, self._endpoint = Path(path), searcher.peer.endpoint

    def announce(self) -> None:
        if self._endpoint not in self.look().places:
            with self._path.open("a") as file:
                file.write(f"{self._endpoint}\n")

    def look(self) -> Sighting:
        with contextlib.suppress(FileNotFoundError):
            return Sighting(tuple(self._path.read_text().split()))
        return Sighting(())

    def close(self) -> None:
        pass


def test_a_registered_method_finds_members(tmp_path: Path) -> None:
    register_discovery("list", ListFile)
    spec = presets.tcp(when_alone="create").replace(
        "Discovery", methods=(f"list:{tmp_path / 'all'}",), when_alone="auto"
    )
    with sync.join("g", spec, timeout=30.0) as a, sync.join("g", spec, timeout=30.0) as b:
        assert b.view.members[0] == a.me
        assert len(b.view) == 2


def test_an_installed_package_brings_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def entry_points(group: str, name: str) -> list[EntryPoint]:
        asked.append(f"{group} {name}")
        return [EntryPoint(name, f"{__name__}:ListFile", group)]

    monkeypatch.setattr(method, "entry_points", entry_points)
    monkeypatch.setattr(method, "_methods", {})
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    spec = Discovery(methods=("installed:/all", "installed:/more"))
    made = method.make_methods(Searcher(Peer(Address(1), "a", "127.0.0.1:7"), "g", spec))
    assert [type(one).__name__ for one in made.values()] == ["ListFile", "ListFile"]
    assert asked == ["ringcast.discovery installed"], "looked up once"


def test_an_unknown_method_is_refused() -> None:
    spec = presets.tcp(when_alone="create").replace("Discovery", methods=("nowhere:x",))
    with pytest.raises(ConfigError, match='no method is called "nowhere": use one of dns, file'):
        sync.join("g", spec)


def test_the_settings_of_discovery_choose_methods() -> None:
    spec = Discovery(dns="a:7", file="/shared", methods=("list:/all",))
    assert list(chosen_methods(spec)) == [
        ("a:7", "dns", "a:7"),
        ("/shared", "file", "/shared"),
        ("list:/all", "list", "/all"),
    ]
