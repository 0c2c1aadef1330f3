"""A process that answers as a Prometheus would that scrapes one dcgm-exporter per node of the synthetic cluster.

Queries are recognised by their metric, function, ranges and outermost grouping, not evaluated: every board's series is
arithmetic from its number, so the answers agree with each other and have the size and labels of real ones. Metrics that
dcgm-exporter does not publish by default have no series.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from benchmarks.synthetic import (
    PODS_PER_NODE,
    REPLICAS_PER_OWNER,
    gpus_of,
    holder_number,
    pod_document,
)

JOB: Final = "dcgm-exporter"
INTERVAL_S: Final = 15
AGE_S: Final = 5
"""How long ago the newest scrape was."""

_ACTIVITY: Final = ((0.0, 0.0), (0.0, 0.0), (0.12, 0.35), (0.12, 0.35), (0.2, 0.5)) + (
    ((0.6, 0.95),) * 4 + ((0.96, 1.0),)
)
"""Mean and peak activity of the kinds of workloads: two of ten idle, three little used, four busy, one saturated."""
KINDS: Final = len(_ACTIVITY)

_SCALES: Final[Mapping[str, tuple[float, float]]] = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (0, 1),
    "DCGM_FI_DEV_GPU_UTIL": (0, 100),
    "DCGM_FI_PROF_DRAM_ACTIVE": (0, 0.5),
    "DCGM_FI_DEV_MEM_COPY_UTIL": (0, 50),
    "DCGM_FI_PROF_PCIE_TX_BYTES": (0, 1e9),
    "DCGM_FI_PROF_PCIE_RX_BYTES": (0, 1e9),
    "DCGM_FI_DEV_FB_USED": (20_480, 0),
    "DCGM_FI_DEV_FB_FREE": (61_440, 0),
    "DCGM_FI_DEV_POWER_USAGE": (70, 300),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (1e12, 1e9),
}
"""A metric's value at activity 0, and what full activity adds."""

_METRIC: Final = re.compile("|".join(sorted(_SCALES, key=len, reverse=True)))
_AGGREGATE: Final = re.compile(r"(?:max|min|sum|avg|count|group)\s*(?:by\s*\(([^)]*)\)\s*)?\(")
_RANGE: Final = re.compile(r"\[(\d+)(ms|s|m|h|d)")
_JOB: Final = re.compile(r'\bjob(=~?)"((?:[^"\\]|\\.)*)"')
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Course:
    """How one series went over the ranges of a query: its lowest, mean and highest value, and how often it was scraped."""

    low: float
    mean: float
    high: float
    at_s: float
    longest_s: float
    shortest_s: float

    @property
    def samples(self) -> float:
        """In the longest range."""
        return self.longest_s // INTERVAL_S


_FUNCTIONS: Final[tuple[tuple[str, Callable[[Course], float]], ...]] = (
    (r"^count", lambda _: 1),
    (r"^min.*timestamp\(", lambda course: course.at_s - course.longest_s),
    (r"timestamp\(", lambda course: course.at_s - AGE_S),
    (r"sum_over_time.*count_over_time", lambda course: course.samples),
    (r"count_over_time", lambda course: course.shortest_s // INTERVAL_S),
    (r"quantile_over_time", lambda course: 0.9 * course.high + 0.1 * course.low),
    (r"avg_over_time", lambda course: course.mean),
    (r"\b(?:rate|irate|deriv)\(", lambda course: course.mean - course.low),
    (r"\b(?:increase|delta)\(", lambda course: (course.mean - course.low) * course.longest_s),
    (r"changes\(", lambda course: course.samples if course.mean > course.low else 0),
    (r"sum_over_time", lambda course: course.mean * course.samples),
    (r"max_over_time", lambda course: course.high),
    (r"min_over_time", lambda course: course.low),
    (r"", lambda course: course.mean),
)
"""What a query's text says that it asks for; the first that is found holds."""


@dataclass(frozen=True)
class Question:
    """What a query asks: of which metric, and by which labels (None: one number for all, empty: every label)."""

    metric: str
    by: tuple[str, ...] | None
    text: str

    def value(self, kind: int, at_s: float) -> float:
        """The value of any series of a kind of workload."""
        mean, peak = _ACTIVITY[kind]
        base, slope = _SCALES[self.metric]
        ranges_s = [float(number) * _UNITS[unit] for number, unit in _RANGE.findall(self.text)] or [0.0]
        course = Course(base, base + slope * mean, base + slope * peak, at_s, max(ranges_s), min(ranges_s))
        return next(read(course) for pattern, read in _FUNCTIONS if re.search(pattern, self.text, re.DOTALL))


def question_of(text: str) -> Question | None:
    """The query's question; None where this store has no series for it."""
    metric = _METRIC.search(text)
    if metric is None:
        return None
    for how, value in _JOB.findall(text):
        if not (re.fullmatch(value, JOB) if how == "=~" else value == JOB):
            return None
    outer = text.strip()
    grouping = _AGGREGATE.match(outer)
    if grouping is None:
        return Question(metric.group(), (), outer)
    listed = grouping.group(1)
    by = None if listed is None else tuple(sorted(label.strip() for label in listed.split(",")))
    return Question(metric.group(), by, outer)


def boards(pods: int) -> Iterator[tuple[dict[str, str], int]]:
    """Labels of every board's series as a Prometheus without honorLabels stores them, and its kind of workload."""
    for index in range(pods):
        held = gpus_of(index)
        if not held:
            continue
        meta = pod_document(index, gpus=held)["metadata"]
        node = index // PODS_PER_NODE
        for board in range(held):
            number = index % PODS_PER_NODE * 2 + board
            yield (
                {
                    "UUID": f"GPU-{index:08x}-{board:04x}-4a7b-9c1d-{index * 2 + board:012x}",
                    "gpu": str(number),
                    "device": f"nvidia{number}",
                    "pci_bus_id": f"00000000:{number:02X}:00.0",
                    "modelName": "NVIDIA A100-SXM4-80GB",
                    "Hostname": f"node-{node}",
                    "exported_container": "server",
                    "exported_namespace": meta["namespace"],
                    "exported_pod": meta["name"],
                    "container": "exporter",
                    "namespace": "gpu-operator",
                    "pod": f"dcgm-exporter-{node:05d}",
                    "instance": f"10.{node // 65536}.{node // 256 % 256}.{node % 256}:9400",
                    "job": JOB,
                },
                holder_number(index // REPLICAS_PER_OWNER) % KINDS,
            )


class MetricsStore:
    """The query API over the boards of a cluster of this many pods."""

    def __init__(self, pods: int) -> None:
        self._boards = list(boards(pods))
        self._heads: dict[tuple[str, ...], list[tuple[bytes, int]]] = {}
        self.queries = 0

    def routes(self) -> list[web.RouteDef]:
        """Instant and range queries, and how many of them there were."""
        return [
            web.post("/api/v1/query", self._query),
            web.post("/api/v1/query_range", self._query_range),
            web.get("/bench/queries", self._count),
        ]

    async def _count(self, _request: web.Request) -> web.Response:
        return web.json_response(self.queries)

    async def _query(self, request: web.Request) -> web.Response:
        form = await request.post()
        at_s = float(str(form.get("time") or time.time()))  # noqa: TID251 - a server's own clock
        self.queries += 1
        if str(form["query"]).strip() == "time()":
            return _answer("scalar", f'[{at_s:.3f},"{at_s:.3f}"]'.encode())
        return _answer("vector", self.vector(str(form["query"]), at_s))

    async def _query_range(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.queries += 1
        start_s, end_s, step_s = (_seconds(form[name]) for name in ("start", "end", "step"))
        return _answer("matrix", self.matrix(form["query"], start_s, end_s, step_s))

    def vector(self, text: str, at_s: float) -> bytes:
        """The rows of an instant query as JSON."""

        def value(asked: Question, kind: int) -> str:
            return f'"value":[{at_s:.3f},"{asked.value(kind, at_s):.12g}"]}}'

        return self._rows(text, value)

    def matrix(self, text: str, start_s: float, end_s: float, step_s: float) -> bytes:
        """The rows of a range query as JSON."""
        times = [start_s + number * step_s for number in range(int((end_s - start_s) / step_s + 1e-9) + 1)]

        def values(asked: Question, kind: int) -> str:
            points = ",".join(f'[{at_s:.3f},"{asked.value(kind, at_s):.12g}"]' for at_s in times)
            return f'"values":[{points}]}}'

        return self._rows(text, values)

    def _rows(self, text: str, value: Any) -> bytes:
        asked = question_of(text)
        if asked is None:
            return b"[]"
        if asked.by is None or set(asked.by) <= {"job"}:
            labels = json.dumps({"job": JOB} if asked.by else {})
            # The busiest of the fleet answers for it: aggregates without labels are maxima.
            return f'[{{"metric":{labels},{value(asked, KINDS - 1)}]'.encode()
        tails = [value(asked, kind).encode() for kind in range(KINDS)]
        return b"[" + b",".join([head + tails[kind] for head, kind in self._head(asked.by)]) + b"]"

    def _head(self, by: tuple[str, ...]) -> list[tuple[bytes, int]]:
        """Each row up to its value; an empty list of labels keeps them all, as a plain selector does."""
        if by not in self._heads:
            rows = (
                (_compact({n: v for n, v in labels.items() if not by or n in by}), kind)
                for labels, kind in self._boards
            )
            self._heads[by] = [(b'{"metric":' + labels + b",", kind) for labels, kind in dict(rows).items()]
        return self._heads[by]


def _compact(labels: dict[str, str]) -> bytes:
    return json.dumps(dict(sorted(labels.items())), separators=(",", ":")).encode()


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    return float(found.group(1)) * _UNITS[found.group(2)] if found else float(text)


def _answer(kind: str, result: bytes) -> web.Response:
    head = f'{{"status":"success","data":{{"resultType":"{kind}","result":'
    return web.Response(body=head.encode() + result + b"}}", content_type="application/json")


async def _serve(pods: int) -> None:
    app = web.Application()
    app.add_routes(MetricsStore(pods).routes())
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
