"""A soak whose members lack a protection, to see that its audits notice.

    python tests/broken_soak.py duplicates_are_handed_up --audit --minutes 1

The first word names a function of `tests/protections.py`; the others are those of `ringcast soak`.
The exit status is that of the soak: 1 when a guarantee was broken.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ringcast.cli.main import main as ringcast
from ringcast.demo import member, process
from tests.protections import PROTECTIONS

MEMBER = "member"


def main(words: list[str]) -> int:
    """Be the soak, or one of its members."""
    removals = {protection.remove.__name__: protection.remove for protection in PROTECTIONS}
    if len(words) < 1 or words[0] not in removals:
        sys.stderr.write(f"name one of these first: {', '.join(removals)}\n")
        return 2
    name, *rest = words
    if rest[:1] == [MEMBER]:
        removals[name]()
        sys.argv[1:] = rest[1:]
        return member.main()
    process.MEMBER_COMMAND[:] = [sys.executable, __file__, name, MEMBER]
    return ringcast(["soak", *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
