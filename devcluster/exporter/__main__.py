"""`python -m devcluster.exporter`: the GPU exporter of a devcluster."""

import argparse
import asyncio
import contextlib
import signal
import time
from pathlib import Path

from devcluster.api_client import ApiClient
from devcluster.exporter.server import ExporterServer


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m devcluster.exporter", description=__doc__)
    parser.add_argument("--server", required=True, help="URL of the API server")
    parser.add_argument("--ca-file", required=True, type=Path, help="certificate to trust")
    parser.add_argument("--token-file", required=True, type=Path, help="file with a bearer token")
    parser.add_argument("--port", required=True, type=int, help="loopback port to serve on")
    parser.add_argument("--state", required=True, type=Path, help="file that survives a restart")
    arguments = parser.parse_args()
    api = ApiClient(arguments.server, arguments.ca_file, arguments.token_file.read_text().strip())
    asyncio.run(_serve(api, arguments.state, arguments.port))


async def _serve(api: ApiClient, state_path: Path, port: int) -> None:
    clock = time.time  # noqa: TID251 - here the clock is injected; loads count on over restarts
    server = asyncio.create_task(ExporterServer(api, state_path, clock).serve(port), name="exporter")
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await server


if __name__ == "__main__":
    main()
