"""Closed groups over real sockets: members with the key are in, others get no answer."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
import traceback
from contextlib import suppress
from pathlib import Path

import pytest

from ringcast import sync
from ringcast.cli.main import main
from ringcast.closed.keys import KEY_SIZE, generate
from ringcast.core.model.address import Address, Peer
from ringcast.core.model.view import NO_VIEW
from ringcast.core.wire.codec import encode, group_id
from ringcast.core.wire.frames import Discover
from ringcast.errors import ConfigError, RingcastError
from ringcast.explain import explain, to_text
from ringcast.runtime.net.connection import encode_hello
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.ops.status_text import overview
from tests.runtime.support import (
    SOON,
    SPECS,
    await_view,
    group_name,
    members,
    numbered,
    take_bytes,
    tcp,
)
from tests.runtime.waiting import wait_until

KEY, OTHER = bytes(range(50, 50 + KEY_SIZE)), bytes(range(60, 60 + KEY_SIZE))

pytestmark = pytest.mark.net


@pytest.mark.parametrize("kind", ["memory", "multicast", "unicast", "tcp"])
def test_a_closed_group_carries_small_and_large_messages(kind: str) -> None:
    with members(3, kind, key=KEY) as (a, b, c):
        a.send_many(numbered("x", 2_000))
        c.send(bytes(3_000_000))
        got = take_bytes(b, 2_001)
        assert sorted(map(len, got))[-1] == 3_000_000
        assert [one for one in got if len(one) < 100] == numbered("x", 2_000)
        b.send(b"to one", to=a.me)
        assert b"to one" in take_bytes(a, 2_002)


@pytest.mark.parametrize(("ours", "theirs"), [(KEY, OTHER), (KEY, None), (None, KEY)])
@pytest.mark.parametrize("kind", ["multicast", "tcp"])
def test_members_with_other_keys_form_no_group(
    kind: str, ours: bytes | None, theirs: bytes | None
) -> None:
    with members(1, kind, key=ours) as (a,):
        spec = SPECS[kind](a.endpoint).replace("Discovery", when_alone="wait")
        with pytest.raises(RingcastError, match=r"; .*\bkey\b"):
            sync.join(a._member.group, spec, timeout=1.0, key=theirs)
        assert len(a.view) == 1


def test_keys_are_replaced_while_messages_flow(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    generate(old)
    generate(new)
    files = [tmp_path / "a.key", tmp_path / "b.key"]
    for file in files:
        file.write_text(old.read_text())
        file.chmod(0o600)
    name = group_name()
    with (
        sync.join(name, tcp(None), key_file=files[0]) as a,
        sync.join(name, tcp(a.endpoint), key_file=files[1]) as b,
    ):
        await_view(a, 2)
        for phase in (old.read_text() + new.read_text(), new.read_text() + old.read_text()):
            for file, group in zip(files, (a, b), strict=True):
                file.write_text(phase)
                group.reload_keys()
                a.send_many(numbered(f"{file.name}", 200))
                assert take_bytes(b, 200) == numbered(f"{file.name}", 200)
        for file, group in zip(files, (a, b), strict=True):
            file.write_text(new.read_text())
            group.reload_keys()
        a.send(b"after")
        assert take_bytes(b, 1) == [b"after"]
        assert len(a.stats()["key_ids"]) == 1
        late = tcp(a.endpoint).replace("Discovery", when_alone="wait")
        with pytest.raises(RingcastError):
            sync.join(name, late, timeout=1.0, key_file=old).close()
        assert len(a.view) == 2


def test_a_stranger_gets_no_answer_over_udp() -> None:
    with (
        members(2, "unicast", key=KEY) as (a, b),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        stranger.bind(("127.0.0.1", 0))
        where = "{}:{}".format(*stranger.getsockname())
        peer = Peer(Address(99), "stranger", where)
        question = Discover(peer, NO_VIEW, 1)
        for group in (group_id(a._member.group), a._member.security.group_seal.tags[0]):  # type: ignore[union-attr]
            data = b"".join(encode(group, peer.address, [question]))
            stranger.sendto(data, split_endpoint(a.endpoint))
        b.send(b"x")
        assert take_bytes(a, 1) == [b"x"]
        wait_until(lambda: bool(a.stats()["counters"]["dropped_unsealed"]))
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.recv(65_536)
        assert peer.address not in a._member.transport._places.peers  # type: ignore[attr-defined]


def test_a_key_appears_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown = io.StringIO()
    with members(1, "tcp", key=KEY) as (a,):
        status = {**a.stats(), "pid": 1}
        shown.write(f"{a!r} {a._member.security} {a._member.security.seal!r} {vars(a._member)}")
        shown.write(json.dumps(status) + overview([status]))
        shown.write(to_text(explain("tcp")) + tcp(None).to_toml())
    for wrong in (KEY[:-1], KEY + b"x"):
        try:
            sync.join("g", tcp(None), key=wrong)
        except ConfigError as error:
            shown.write("".join(traceback.format_exception(error)))
    text = (shown.getvalue() + caplog.text).lower()
    assert "closed" in text
    for secret in (KEY.hex(), KEY.hex()[:16], repr(KEY)[2:20].lower(), str(list(KEY))[1:20]):
        assert secret not in text


def test_keygen_writes_a_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "group.key"
    assert main(["keygen", str(path)]) == 0
    told = capsys.readouterr().out
    assert "key id" in told
    assert path.read_text().splitlines()[1] not in told
    assert main(["keygen", str(path)]) == 2
    assert "never overwritten" in capsys.readouterr().err


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "group.key"
    generate(path)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        sync.join("g", tcp(None), key_file=path)


def test_the_first_log_line_says_open_or_closed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ringcast.group")
    for key, word in ((None, "the group is open"), (KEY, "the group is closed (key id")):
        caplog.clear()
        with members(1, "memory", key=key):
            assert word in caplog.messages[0]


def test_a_stranger_gets_no_answer_over_tcp_and_takes_no_connection_over() -> None:
    with members(2, "tcp", key=KEY) as (a, b):
        seal = a._member.security.group_seal
        assert seal is not None
        hellos = [
            encode_hello(seal.tags[0], b.me),
            b"RCts" + encode_hello(seal.tags[0], b.me)[4:] + bytes(48),
            b"GET / HTTP/1.1\r\n" + bytes(80),
        ]
        for hello in hellos:
            with socket.create_connection(split_endpoint(a.endpoint)) as stranger:
                stranger.sendall(hello + bytes(72))
                stranger.settimeout(SOON)
                with suppress(ConnectionResetError):
                    assert stranger.recv(100) == b""
        a.send_many(numbered("x", 100))
        assert take_bytes(b, 100) == numbered("x", 100)
        assert len(a.view) == 2


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("same", '"{group}" is there'),
        ("other", "ends connections without a word: it has another key or none"),
        ("none", "ends connections without a word: it is in a closed group"),
        ("not needed", "is in an open group: leave --key-file out|it has another key or none"),
        ("readable", "chmod 600"),
    ],
)
def test_doctor_names_wrong_missing_and_readable_keys(
    key: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = tmp_path / "own.key", tmp_path / "other.key"
    generate(own)
    generate(other)
    name = group_name()
    given = {"same": own, "other": other, "readable": own, "not needed": own}.get(key)
    with sync.join(name, tcp(None), key_file=None if key == "not needed" else own) as a:
        if key == "readable":
            own.chmod(0o644)
        words = ["doctor", "--group", name, "--seeds", a.endpoint, "--timeout", "1"]
        status = main([*words, "--key-file", str(given)] if given else words)
    told = capsys.readouterr().out
    assert re.search(says.format(group=name), told), told
    assert (status == 0) == (key == "same")
    assert own.read_text().splitlines()[1] not in told
