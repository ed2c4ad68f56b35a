"""A name service for tests: every question has the same addresses for an answer; UDP, port 53.

Lines on standard input are addresses, several with blanks between, and take the place of those
before; an empty line means that the name exists and has none.
"""

import socket
import struct
import sys
import threading

addresses: list[str] = []


def read() -> None:
    """Take what is typed."""
    for line in sys.stdin:
        addresses[:] = line.split()
        print("known", flush=True)


def answer(question: bytes) -> bytes:
    """The answer: all addresses, for questions about IPv4."""
    end = question.index(b"\0", 12) + 5
    kind = struct.unpack("!H", question[end - 4 : end - 2])[0]
    found = addresses if kind == 1 else []
    head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0)
    records = [struct.pack("!HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(a) for a in found]
    return head + question[12:end] + b"".join(records)


def main() -> None:
    """Answer for ever."""
    threading.Thread(target=read, daemon=True).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 53))
        print("ready", flush=True)
        while True:
            question, caller = sock.recvfrom(512)
            sock.sendto(answer(question), caller)


if __name__ == "__main__":
    main()
