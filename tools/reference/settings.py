"""The settings of every protocol, from the sentences under their fields."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace

from ringcast import presets, protocols
from ringcast.explain import differences, explain_protocol
from tools.reference.text import NOTE, cell, first_paragraph, table

HEAD = f"""\
# Settings

{NOTE}Every protocol is imported from `ringcast.protocols`. Change settings with
`presets.lan().replace("NakAck4", capacity=1024)`, add a protocol with `.insert(Compress())`, leave
one out with `.without("Fragment")`. On the command line that is `--set NakAck4.capacity=1024`,
`--with Compress`, `--without Fragment`; in a TOML file, a table per protocol
(`ringcast explain lan --toml` writes one).
"""


def page() -> str:
    """docs/reference/settings.md."""
    lines = [HEAD, "## Presets", ""]
    lines += table(("preset", "what it is for", "unlike `lan`, it"), _presets())
    for name in protocols.names():
        kind = protocols.named(name)
        if kind.__module__.startswith("ringcast."):
            lines += _protocol(kind)
    return "\n".join(lines).rstrip() + "\n"


def _presets() -> list[tuple[str, ...]]:
    return [
        (f"`{name}`", cell(first_paragraph(make)), cell(differences(make())) or "—")
        for name, make in presets.PRESETS.items()
    ]


def _protocol(kind: type[protocols.Spec]) -> list[str]:
    explained = explain_protocol(kind)
    lines = [f"## {explained.name}", "", f"{explained.about} Its role is `{explained.role}`.", ""]
    kinds = fields(kind)  # type: ignore[arg-type]
    written = {field.name: field.default for field in kinds if field.default is not MISSING}
    rows = []
    for setting in explained.settings:  # As written, not as a default depends on the machine.
        default = replace(setting, value=written.get(setting.name, setting.value))
        rows.append((f"`{setting.name}`", cell(default.text), cell(setting.about)))
    return lines + table(("setting", "default", "meaning"), rows)
