"""Splitting a stream of chunks into complete lines, without a limit that Kubernetes objects would meet.

aiohttp's own ``readline`` raises on lines longer than twice its buffer; a watch line may be larger than 4 MiB.
"""

from collections.abc import Iterator

from autoscaler.kube.errors import UnexpectedBody


class LineSplitter:
    """Collects chunks and gives out whole lines. A line split over many chunks is joined once, not once per chunk."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []
        self.pending = 0
        """Bytes of a line whose end has not arrived."""

    def feed(self, chunk: bytes) -> bytes:
        """All lines completed by this chunk, newlines included; empty when none is. Raises UnexpectedBody past the cap."""
        end = chunk.rfind(b"\n") + 1
        if end == 0:
            self._keep(chunk)
            return b""
        complete = chunk[:end]
        if self._parts:
            self._parts.append(complete)
            complete = b"".join(self._parts)
            self._parts.clear()
            self.pending = 0
        if end < len(chunk):
            self._keep(chunk[end:])
        return complete

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.pending += len(part)
        if self.pending > self._max_line_bytes:
            raise UnexpectedBody(200, "", f"a line longer than {self._max_line_bytes} bytes")


def slices(complete: bytes, size: int) -> Iterator[bytes]:
    """The same lines in pieces of about ``size`` bytes, cut at line ends only."""
    if len(complete) <= size:
        if complete:
            yield complete
        return
    start = 0
    while start < len(complete):
        end = complete.find(b"\n", start + size) + 1
        if end == 0:
            end = len(complete)
        yield complete[start:end]
        start = end
