"""Every input of the corpus, among them those that once broke a target, goes through its target."""

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_breaks_nothing(target: str) -> None:
    inputs = sorted((CORPUS / target).iterdir())
    assert inputs
    for path in inputs:
        TARGETS[target](path.read_bytes())
