"""What a refused command should have been given."""

import shlex

import pytest

from ringcast import StackSpec, presets
from ringcast.cli.refusal import with_remedy
from ringcast.core.stack.fingerprint import difference, fingerprint
from ringcast.protocols import Compress, Majority
from tests.unit.cli.test_stack import chosen

LAN = presets.loopback()


def refusal(group: StackSpec, joiner: StackSpec) -> str:
    """What a group says to a joiner; empty when it takes it."""
    return difference(fingerprint(list(group)), fingerprint(list(joiner)))


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (LAN.with_total_order(), "--with Sequencer"),
        (LAN.replace("NakAck4", retain=False), "--set NakAck4.retain=False"),
        (
            LAN.insert(Compress(algorithm="zlib"), Majority(first=3)),
            "--with Compress.algorithm=zlib --with Compress.max_message=16000000"
            " --with Majority.first=3",
        ),
        (presets.stable(), "--with Flow --with Stability --with NakAck3"),
    ],
)
def test_the_arguments_lead_into_the_group(group: StackSpec, expected: str) -> None:
    reason = refusal(group, LAN)
    assert with_remedy(reason) == f"{reason}; give {expected}"
    assert refusal(group, chosen(*shlex.split(expected))) == ""


def test_what_only_this_member_has_is_to_be_left_out() -> None:
    assert with_remedy(refusal(LAN, LAN.with_total_order())).endswith("; leave out Sequencer")
    told = with_remedy(refusal(LAN, presets.stable()))
    assert told.endswith("; give --with NakAck4 and leave out Flow, Stability")


@pytest.mark.parametrize(
    "sentence",
    [
        'the group "x" was not joined: nobody answers',
        "the group has $(reboot), and this member does not",
        "the group has Compress(algorithm=`reboot`), and this member does not",
    ],
)
def test_other_sentences_stay_as_they_are(sentence: str) -> None:
    assert with_remedy(sentence) == sentence
