"""The devcluster's side of the exporter's HTTP interface."""

from collections.abc import Iterable
from dataclasses import dataclass

import aiohttp
import msgspec

from devcluster.exporter.fleet import BoardView
from devcluster.exporter.load import WorkloadLoad


@dataclass(frozen=True)
class ExporterClient:
    """Talks to a running exporter."""

    url: str

    async def declare(self, loads: Iterable[WorkloadLoad], *, time_scale: float = 1.0) -> None:
        """Give workloads their loads from now on; times in a load count from this call."""
        body = msgspec.json.encode({"loads": list(loads), "time_scale": time_scale})
        async with aiohttp.ClientSession(self.url) as session, session.post("/loads", data=body) as answer:
            answer.raise_for_status()

    async def boards(self) -> list[BoardView]:
        """Every held board and its holder."""
        async with aiohttp.ClientSession(self.url) as session, session.get("/boards") as answer:
            answer.raise_for_status()
            return msgspec.json.decode(await answer.read(), type=list[BoardView])

    async def metrics(self) -> str:
        """The exposition as Prometheus would scrape it now."""
        async with aiohttp.ClientSession(self.url) as session, session.get("/metrics") as answer:
            answer.raise_for_status()
            return await answer.text()
