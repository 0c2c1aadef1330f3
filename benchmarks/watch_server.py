"""A process that serves one empty pod list and then streams watch events as fast as the reader takes them."""

import asyncio
import sys

from aiohttp import web

from benchmarks.synthetic import watch_lines

TEMPLATES = 4_000
FIRST_VERSION = 3_000_000
CHUNK = 64 * 1024


def _templates() -> list[tuple[bytes, bytes]]:
    """Event lines cut at the resource version, which must grow with every event."""
    marks = (
        line.partition(str(FIRST_VERSION + n).encode())
        for n, line in enumerate(watch_lines(TEMPLATES, pods=TEMPLATES))
    )
    return [(head, tail) for head, _, tail in marks]


async def _list_or_watch(request: web.Request) -> web.StreamResponse:
    if "watch" not in request.query:
        empty = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2000000"},"items":[]}'
        return web.Response(body=empty, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    version, buffer = FIRST_VERSION, bytearray()
    while True:
        for head, tail in request.app[LINES]:
            buffer += head + str(version).encode() + tail
            version += 1
            if len(buffer) >= CHUNK:
                await response.write(bytes(buffer))
                buffer.clear()


LINES: web.AppKey[list[tuple[bytes, bytes]]] = web.AppKey("lines", list)


async def _serve() -> None:
    app = web.Application()
    app[LINES] = _templates()
    app.router.add_get("/api/v1/pods", _list_or_watch)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve())
