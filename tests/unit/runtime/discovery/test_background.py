"""Discovery methods run beside a member, and end with it."""

import threading
from pathlib import Path


def test_no_thread_is_left_when_the_member_has_gone(tmp_path: Path) -> None:
    from ringcast import presets, sync

    with sync.join("g", presets.tcp(file=str(tmp_path)), timeout=15.0):
        looking = [t for t in threading.enumerate() if t.name == f"ringcast-look-{tmp_path}"]
        assert len(looking) == 1
    looking[0].join(15.0)
    assert not looking[0].is_alive()
