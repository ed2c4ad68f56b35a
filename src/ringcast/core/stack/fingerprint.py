"""The fingerprint of a stack: what all members of a group need to have alike, as a line of text.

fragment=Fragment multicast=NakAck4(retain=True) unicast=Unicast
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ringcast.core.stack import registry
from ringcast.core.stack.part import Spec

FINGERPRINT_MAX = 4_000
"""Characters of a fingerprint that are read."""


def fingerprint(specs: Sequence[Spec]) -> str:
    """The protocols that members have to share, with the settings that have to be the same."""
    beside = [spec.alike_beside for spec in specs]
    words = []
    for spec in specs:
        if registry.of(type(spec)).shared:
            names = chain(spec.alike, *(names.get(spec.role, ()) for names in beside))
            settings = ",".join(f"{name}={spec.values()[name]}" for name in names)
            words.append(
                f"{spec.role}={type(spec).__name__}" + (f"({settings})" if settings else "")
            )
    return " ".join(words)


def difference(group: str, joiner: str) -> str:
    """How a joiner's fingerprint differs from the group's, in words; empty when it does not."""
    return "; ".join(_differences(_roles(group), _roles(joiner[:FINGERPRINT_MAX])))


def _roles(text: str) -> dict[str, str]:
    return {role: name for role, _, name in (word.partition("=") for word in text.split())}


def _differences(group: dict[str, str], joiner: dict[str, str]) -> Iterator[str]:
    consequences = []
    for role in dict.fromkeys([*group, *joiner]):
        theirs, own = group.get(role), joiner.get(role)
        if own is None:
            yield f"the group has {theirs}, and this member does not"
        elif theirs is None:
            yield f"this member has {own}, and the group does not"
        elif theirs != own:
            theirs, own, is_consequence = _unlike(theirs, own)
            sentence = f"the group has {theirs}, and this member has {own}"
            if is_consequence:
                consequences.append(sentence)
            else:
                yield sentence
    if group.keys() == joiner.keys():  # Else the protocols that only one has are the reason.
        yield from consequences


def _unlike(theirs: str, own: str) -> tuple[str, str, bool]:
    """Two protocols of one role without the settings that they have in common; whether only one of
    them names a setting, since a protocol beside it wants that to be alike."""
    (their_name, their_settings), (own_name, own_settings) = _parts(theirs), _parts(own)
    if their_name != own_name:
        return their_name, own_name, False
    both = [key for key in their_settings if key in own_settings]
    unlike = [key for key in both if their_settings[key] != own_settings[key]]
    keys = unlike or [key for key in (*their_settings, *own_settings) if key not in both]
    sides = (
        ",".join(f"{key}={settings[key]}" for key in keys if key in settings)
        for settings in (their_settings, own_settings)
    )
    their_rest, own_rest = sides
    return f"{their_name}({their_rest})", f"{own_name}({own_rest})", not unlike


def _parts(protocol: str) -> tuple[str, dict[str, str]]:
    name, _, settings = protocol.partition("(")
    pairs = (setting.partition("=") for setting in settings.removesuffix(")").split(","))
    return name, {key: value for key, _, value in pairs if key}
