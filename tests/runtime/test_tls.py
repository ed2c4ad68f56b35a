"""TLS over TCP: members show certificates of one authority, and nobody else gets in."""

from __future__ import annotations

import logging
import os
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

from ringcast import StackSpec, sync
from ringcast.cli.main import main
from ringcast.core.wire.codec import group_id
from ringcast.errors import ConfigError
from ringcast.runtime.net.connection import encode_hello
from ringcast.runtime.net.endpoints import split_endpoint
from ringcast.runtime.net.stream.tls_files import FILE_SIZE_MAX
from ringcast.runtime.ops.status_text import overview
from ringcast.transports import Tcp
from tests.runtime.certificates import Authority
from tests.runtime.support import SOON, await_view, group_name, numbered, seeded, take_bytes
from tests.runtime.waiting import wait_until

pytestmark = pytest.mark.net
KEY = bytes(range(32))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@contextmanager
def group_of(*transports: Tcp, key: bytes | None = None) -> Iterator[list[sync.Group]]:
    """Members of one group with these transports, in one view."""
    name, joined = group_name(), list[sync.Group]()
    with ExitStack() as stack:
        for transport in transports:
            spec = seeded(transport, joined[0].endpoint if joined else None)
            group = sync.join(name, spec, timeout=SOON, key=key)
            stack.callback(group.close)
            joined.append(group)
        for group in joined:
            await_view(group, len(transports))
        yield joined


@pytest.mark.parametrize("key", [None, KEY])
def test_members_with_certificates_exchange_small_and_large_messages(
    authority: Authority, key: bytes | None
) -> None:
    with group_of(*(authority.member(name) for name in "abc"), key=key) as (a, b, c):
        a.send_many(numbered("x", 2_000))
        c.send(bytes(3_000_000))
        got = take_bytes(b, 2_001)
        assert [one for one in got if len(one) < 100] == numbered("x", 2_000)
        assert max(map(len, got)) == 3_000_000
        b.send(b"to one", to=a.me)
        assert b"to one" in take_bytes(a, 2_002)


def test_nothing_readable_is_on_the_network(authority: Authority) -> None:
    """A member calls a process that listens in the place of a seed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"127.0.0.1:{listener.getsockname()[1]}"
        spec = seeded(authority.member("a"), endpoint)
        spec = spec.replace("Discovery", when_alone="create")
        with sync.join(group_name(), spec, timeout=SOON, name="secret name"):
            listener.settimeout(SOON)
            caller, _ = listener.accept()
            with caller:
                caller.settimeout(SOON)
                heard = caller.recv(10_000)
        assert heard[:2] == b"\x16\x03"
        assert b"RC" not in heard[:6]
        assert b"secret name" not in heard


def test_a_stranger_without_a_certificate_gets_nothing(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with group_of(authority.member("a"), authority.member("b")) as (a, b):
        with (
            socket.create_connection(split_endpoint(a.endpoint), SOON) as sock,
            context.wrap_socket(sock) as stranger,
        ):
            stranger.sendall(encode_hello(group_id(a.name), b.me) + bytes(100))
            with pytest.raises((ssl.SSLError, ConnectionError)):
                stranger.recv(100)
        wait_for(a, "dropped_wrong_certificate")
        a.send_many(numbered("x", 100))
        assert take_bytes(b, 100) == numbered("x", 100)


@pytest.mark.parametrize(
    ("first", "second", "counter"),
    [
        ("ours", "plain", "dropped_no_tls"),
        ("plain", "ours", "dropped_tls"),
        ("ours", "theirs", "dropped_wrong_certificate|refused_by_peer"),
    ],
)
def test_members_without_the_authoritys_certificate_are_refused_with_a_sentence(
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    first: str,
    second: str,
    counter: str,
) -> None:
    transports = {
        "ours": authority.member("a"),
        "theirs": Authority(tmp_path, "theirs").member("b"),
        "plain": Tcp(),
    }
    name = group_name()
    with sync.join(name, seeded(transports[first], None), timeout=SOON) as a:
        spec = seeded(transports[second], a.endpoint).replace("Discovery", when_alone="create")
        with sync.join(name, spec, timeout=SOON):
            wait_for(a, counter)
            assert len(a.view) == 1
    said = [text for text in caplog.messages if "ended the connection" in text]
    assert any("TLS" in text or "certificate" in text for text in said), said


def test_a_caller_that_stays_silent_or_sends_garbage_is_ended(authority: Authority) -> None:
    with group_of(replace(authority.member("a"), connect_timeout=0.2)) as (a,):
        for sent, counter in ((b"", "ended_silent"), (b"\x16\x03\x01\xff\xff" * 99, "dropped_tls")):
            with socket.create_connection(split_endpoint(a.endpoint), SOON) as stranger:
                stranger.sendall(sent)
                wait_for(a, counter)


def test_the_first_log_line_and_the_status_say_that_certificates_close_the_group(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ringcast.group")
    with group_of(authority.member("a")) as (a,):
        assert "the group is closed (TLS certificates)" in caplog.messages[0]
        assert "closed group, by TLS certificates" in overview([dict(a.stats())])


def test_wrong_files_are_refused_with_a_sentence(authority: Authority, tmp_path: Path) -> None:
    good = authority.member("a")
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    wrong = [
        replace(good, tls_certificate=str(tmp_path / "missing.pem")),
        replace(good, tls_certificate=str(text)),
        replace(good, tls_authority=str(text)),
        replace(good, tls_key=str(text)),
        replace(good, tls_certificate=str(authority.path)),
    ]
    for transport in wrong:
        with pytest.raises(ConfigError, match=r"Tcp\.tls_\w+ is .* give a PEM file"):
            sync.join(group_name(), seeded(transport, None))
    with pytest.raises(ConfigError, match="give both"):
        Tcp(tls_certificate="a.pem")


def test_files_that_are_none_are_refused_at_once(authority: Authority, tmp_path: Path) -> None:
    good = authority.member("a")
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(FILE_SIZE_MAX + 1)
    for field in ("tls_certificate", "tls_key", "tls_authority"):
        for path in (pipe, large, tmp_path, Path("/dev/zero")):
            transport = replace(good, **{field: str(path)})  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match=rf"Tcp\.{field} is .* give a PEM file"):
                sync.join(group_name(), seeded(transport, None))


def test_a_key_that_other_users_can_read_is_refused(authority: Authority) -> None:
    good = authority.member("a")
    Path(good.tls_certificate).chmod(0o644)
    with pytest.raises(ConfigError, match=r"mode 0644.*chmod 600"):
        sync.join(group_name(), seeded(good, None))
    Path(good.tls_certificate).chmod(0o640)
    with group_of(good):
        pass


@pytest.mark.parametrize(
    ("days", "usage", "says"),
    [
        (-1, None, "expired"),
        (1, ExtendedKeyUsageOID.SERVER_AUTH, "purpose"),
        (1, ExtendedKeyUsageOID.CLIENT_AUTH, "purpose"),
    ],
)
def test_a_certificate_that_others_would_refuse_is_refused_at_the_start(
    authority: Authority, days: int, usage: ObjectIdentifier | None, says: str
) -> None:
    transport = authority.member("a", days, usage)
    with pytest.raises(ConfigError, match=f"other members would refuse .*{says}"):
        sync.join(group_name(), seeded(transport, None))


def test_one_of_another_authority_than_the_members_own_is_refused_at_the_start(
    authority: Authority, tmp_path: Path
) -> None:
    theirs = Authority(tmp_path, "theirs")
    mixed = replace(authority.member("a"), tls_authority=str(theirs.path))
    with pytest.raises(ConfigError, match="other members would refuse"):
        sync.join(group_name(), seeded(mixed, None))


def test_an_expired_certificate_gets_nothing(authority: Authority) -> None:
    over = authority.member("x", days=-1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(over.tls_certificate)
    with group_of(authority.member("a")) as (a,):
        with (
            socket.create_connection(split_endpoint(a.endpoint), SOON) as sock,
            context.wrap_socket(sock) as stranger,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            stranger.recv(100)
        wait_for(a, "dropped_wrong_certificate")


def test_half_a_handshake_and_one_of_many_bytes_end_in_time(authority: Authority) -> None:
    """The first bytes are right, and then nothing follows, or too much of the same."""
    with group_of(replace(authority.member("a"), connect_timeout=0.2)) as (a,):
        with socket.create_connection(split_endpoint(a.endpoint), SOON) as stranger:
            stranger.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            wait_for(a, "ended_silent")
        with socket.create_connection(split_endpoint(a.endpoint), SOON) as stranger:
            stranger.settimeout(SOON)
            with suppress(ConnectionError):  # A handshake message of 16 MB.
                stranger.sendall(
                    b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(0x3FFC)
                    + (b"\x16\x03\x01\x40\x00" + bytes(0x4000)) * 1_000
                )  # fmt: skip
            wait_for(a, "dropped_tls_error|ended_econnreset|refused_by_peer")


def test_a_stack_with_certificates_is_text_without_their_keys(authority: Authority) -> None:
    transport = authority.member("a")
    spec = seeded(transport, None)
    assert StackSpec.from_toml(spec.to_toml())["transport"] == transport
    assert "PRIVATE" not in spec.to_toml()


@pytest.mark.parametrize(
    ("who", "says"),
    [
        ("ours", '"{group}" is there'),
        ("theirs", "has no certificate of the authority|refuses the certificate"),
        ("plain", "or speaks TLS"),
    ],
)
def test_doctor_names_wrong_and_missing_certificates(
    authority: Authority,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    who: str,
    says: str,
) -> None:
    theirs = Authority(tmp_path, "theirs").member("b")
    given = {"ours": authority.member("b"), "theirs": theirs}.get(who)
    name = group_name()
    with sync.join(name, seeded(authority.member("a"), None), timeout=SOON) as a:
        words = ["doctor", "--group", name, "--seeds", a.endpoint, "--timeout", "1"]
        for field in ("tls_certificate", "tls_authority") if given else ():
            words += ["--set", f'Tcp.{field}="{getattr(given, field)}"']
        status = main(words)
    told = capsys.readouterr().out
    assert re.search(says.format(group=name), told), told
    assert (status == 0) == (who == "ours")


def wait_for(group: sync.Group, counters: str) -> None:
    """Until one of these has been counted."""

    def is_counted() -> bool:
        counted = group._member.transport.stats()
        return any(re.match(counters, name) for name in counted)

    wait_until(is_counted)
