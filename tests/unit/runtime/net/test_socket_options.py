"""What a socket tells of datagrams that no process received."""

import errno
import select
import socket

import pytest

from ringcast.runtime.net.socket_options import report_errors, reported_errors


@pytest.mark.skipif(not hasattr(socket, "MSG_ERRQUEUE"), reason="needs the error queue")
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_port_that_no_process_listens_at_is_reported_once(
    family: socket.AddressFamily, host: str
) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        try:
            sender.bind((host, 0))
        except OSError:
            pytest.skip(f"there is no {host} here")
        report_errors(sender)
        with socket.socket(family, socket.SOCK_DGRAM) as gone:
            gone.bind((host, 0))
            place = gone.getsockname()
        sender.sendto(b"anybody there?", place)
        poll = select.poll()
        poll.register(sender.fileno(), select.POLLERR)
        assert poll.poll(5_000)
        assert list(reported_errors(sender)) == [(errno.ECONNREFUSED, place)]
        assert list(reported_errors(sender)) == []
        sender.sendto(b"no error is left for the next datagram", sender.getsockname())
