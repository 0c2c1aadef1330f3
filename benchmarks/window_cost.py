"""`python -m benchmarks.window_cost`: what a window of 30 minutes costs a real Prometheus beside its newest minute; no bar.

6,400 series with a sample every 15 s; the store's own execution time, the best of a few rounds.
"""

import asyncio
import json
import urllib.parse
import urllib.request
from collections.abc import Iterator

from devcluster.backfill import BLOCK_MS, Series, backfilled_prometheus

SERIES = 6_400
INTERVAL_MS = 15_000
NOW_MS = 1_788_000_000_000 // BLOCK_MS * BLOCK_MS + BLOCK_MS // 2
METRIC = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
ROUNDS = 5


def _recorded() -> Iterator[Series]:
    samples = [(at_ms, 0.5) for at_ms in range(NOW_MS - BLOCK_MS // 3, NOW_MS + 1, INTERVAL_MS)]
    for number in range(SERIES):
        labels = {"UUID": f"GPU-{number}", "pod": f"p-{number}", "namespace": "ns", "job": "dcgm"}
        yield Series(METRIC, labels, samples)


def _milliseconds(url: str, promql: str) -> float:
    body = urllib.parse.urlencode({"query": promql, "time": NOW_MS / 1000, "stats": "all"}).encode()
    answer = json.load(urllib.request.urlopen(f"{url}/api/v1/query", body))
    assert len(answer["data"]["result"]) == SERIES
    return float(answer["data"]["stats"]["timings"]["execTotalTime"]) * 1000


async def _main() -> None:
    async with backfilled_prometheus(_recorded()) as url:
        for function in ("avg_over_time", "max_over_time", "count_over_time"):
            minute, window = (
                min(_milliseconds(url, f"{function}({METRIC}[{span}])") for _ in range(ROUNDS))
                for span in ("1m", "30m")
            )
            figures = {"function": function, "series": SERIES, "minute_ms": minute, "window_ms": window}
            print(
                json.dumps({name: round(v, 1) if isinstance(v, float) else v for name, v in figures.items()})
            )


if __name__ == "__main__":
    asyncio.run(_main())
