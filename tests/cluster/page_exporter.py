"""An exporter of fixed pages, for series that no load could give: a test writes the text, the real Prometheus scrapes it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from devcluster import Cluster
from devcluster.exporter.fleet import BoardView
from devcluster.ports import LOOPBACK

_MEMORY_MIB = 81920


@dataclass(frozen=True)
class PageExporter:
    """Pages by name; a page that is taken away answers 404, which Prometheus treats as an exporter that is gone."""

    port: int
    pages: dict[str, str] = field(default_factory=dict)

    def show(self, cluster: Cluster, name: str, text: str, labels: Mapping[str, str] | None = None) -> None:
        """Serves a page and lets Prometheus scrape it, under labels of the target if there are any."""
        self.pages[f"/{name}"] = text
        cluster.scrape_other(name, self.port, {"__metrics_path__": f"/{name}", **(labels or {})})

    def take_away(self, name: str) -> None:
        """Stops serving a page."""
        del self.pages[f"/{name}"]


@contextmanager
def page_exporter() -> Iterator[PageExporter]:
    """A running exporter. It has a thread of its own, since tests of one module need not share an event loop."""
    pages: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages.get(self.path)
            body = (text or "").encode()
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Scrapes are not worth a line."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="page-exporter"
    )
    thread.start()
    try:
        yield PageExporter(int(server.server_address[1]), pages)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def board_lines(
    board: BoardView, *, engine: str = "0.4", watts: int = 200, owner: Mapping[str, str] | None = None
) -> str:
    """One board as dcgm-exporter shows it; without `owner` it is the pod that really holds it."""
    holder = {"pod": board.pod, "namespace": board.namespace, "container": board.container}
    labels = {
        "gpu": str(board.index),
        "UUID": board.uuid,
        "hostname": board.node,
        **(holder if owner is None else owner),
    }
    text = ",".join(f'{name}="{value}"' for name, value in labels.items())
    values = {
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": engine,
        "DCGM_FI_DEV_FB_USED": 20000,
        "DCGM_FI_DEV_FB_FREE": _MEMORY_MIB - 20000,
        "DCGM_FI_DEV_POWER_USAGE": watts,
    }
    return "".join(f"{metric}{{{text}}} {value}\n" for metric, value in values.items())
