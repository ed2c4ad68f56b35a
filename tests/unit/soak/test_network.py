"""The network of a soak says what is missing where it cannot be made."""

import shutil
from contextlib import ExitStack

import pytest

from ringcast.errors import ConfigError
from ringcast.soak.network import SoakNetwork


def test_a_tool_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "nft" else tool)
    with ExitStack() as stack, pytest.raises(ConfigError, match="--network needs nft: install it"):
        SoakNetwork(2, stack)


def test_a_namespace_that_cannot_be_made_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: tool)
    monkeypatch.setattr("ringcast.soak.network.BRIDGE", "false")
    with ExitStack() as stack, pytest.raises(ConfigError, match="no namespace can be made here"):
        SoakNetwork(2, stack)
