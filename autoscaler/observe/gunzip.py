"""Decompression that stops at a limit: a small compressed answer may stand for one that fills the memory.

Sans I/O: bytes in, bytes out.
"""

import zlib
from typing import Final

_GZIP: Final = 16 + zlib.MAX_WBITS


class GunzipError(ValueError):
    """The bytes are no gzip stream, or more than one."""


class OverLimitError(ValueError):
    """What comes out is over the limit."""


class Gunzip:
    """One gzip stream, fed in pieces; never gives out or holds more than `limit` bytes and one."""

    def __init__(self, limit: int) -> None:
        self._inflate = zlib.decompressobj(wbits=_GZIP)
        self._left = limit

    def feed(self, piece: bytes) -> bytes:
        """What the next piece decompresses to; raises `GunzipError` or `OverLimitError`."""
        if self._inflate.eof:
            raise GunzipError("bytes after the end of the gzip stream")
        try:
            found = self._inflate.decompress(piece, self._left + 1)
        except zlib.error as error:
            raise GunzipError(f"unreadable gzip stream: {error}") from error
        self._left -= len(found)
        if self._left < 0:
            raise OverLimitError
        if self._inflate.unused_data:
            raise GunzipError("bytes after the end of the gzip stream")
        return found

    @property
    def complete(self) -> bool:
        """Whether the stream has ended as such streams end."""
        return self._inflate.eof
