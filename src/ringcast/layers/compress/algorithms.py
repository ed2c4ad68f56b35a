"""Algorithms of compression: blocks of messages, each packed with those before it as dictionary.

zstd comes with Python 3.14 (`compression.zstd`) and, for older ones, with the package
`backports.zstd` (the extra `ringcast[zstd]`). zlib is always available.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

TAIL = b"\x00\x00\xff\xff"
"""The end of each flush of deflate; not sent (RFC 7692)."""
WINDOW_LOG = 18
"""How far a block of zstd looks back: 256 KB, which a receiver keeps per sender."""


class UnpackError(Exception):
    """Bytes that cannot be unpacked, or that would become larger than allowed."""


class Unpacker(Protocol):
    """Unpacks the messages of one block, in order."""

    def unpack(self, data: bytes, most: int) -> bytes:
        """The next message, of up to `most` bytes. Raises UnpackError."""
        ...


class Algorithm(NamedTuple):
    """One way to pack."""

    packer: Callable[[int], Callable[[bytes | memoryview], bytes]]
    """From a level: what packs the messages of one block, in order."""
    unpacker: Callable[[], Unpacker]
    """What unpacks one block."""


def find(name: str) -> Algorithm | None:
    """The algorithm of this name, if it is installed."""
    return _ZLIB if name == "zlib" else _zstd() if name == "zstd" else None


def best() -> str:
    """The name of the best algorithm that is installed."""
    return "zstd" if _zstd() is not None else "zlib"


# zlib ---------------------------------------------------------------------------------------------


def _zlib_packer(level: int) -> Callable[[bytes | memoryview], bytes]:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)

    def pack(payload: bytes | memoryview) -> bytes:
        body = packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH)
        return body.removesuffix(TAIL)

    return pack


class _ZlibUnpacker:
    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(-15)

    def unpack(self, data: bytes, most: int) -> bytes:
        try:
            # One byte more than allowed, to see whether there is more.
            whole = self._unpacker.decompress(data + TAIL, most + 1)
        except zlib.error as error:
            raise UnpackError(str(error)) from None
        if self._unpacker.eof or len(whole) > most:
            raise UnpackError("the block ends too early, or is too large")
        return whole


_ZLIB = Algorithm(_zlib_packer, _ZlibUnpacker)

# zstd ---------------------------------------------------------------------------------------------


@cache
def _zstd() -> Algorithm | None:
    """The algorithm, loaded when it is first asked for."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return _zstd_of(import_module(name))
        except ImportError:
            continue
    return None


def _zstd_of(zstd: Any) -> Algorithm:
    def packer(level: int) -> Callable[[bytes | memoryview], bytes]:
        parameter = zstd.CompressionParameter
        options = {parameter.compression_level: level, parameter.window_log: WINDOW_LOG}
        compressor = zstd.ZstdCompressor(options=options)
        return lambda payload: bytes(compressor.compress(payload, compressor.FLUSH_BLOCK))

    class ZstdUnpacker:
        def __init__(self) -> None:
            limit = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
            self._unpacker = zstd.ZstdDecompressor(options=limit)

        def unpack(self, data: bytes, most: int) -> bytes:
            if not data:
                return b""
            try:
                whole = bytes(self._unpacker.decompress(data, most + 1))
            except (zstd.ZstdError, EOFError) as error:
                raise UnpackError(str(error)) from None
            if self._unpacker.eof or not self._unpacker.needs_input or len(whole) > most:
                raise UnpackError("the block ends too early, or is too large")
            return whole

    return Algorithm(packer, ZstdUnpacker)
