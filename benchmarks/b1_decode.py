"""B1: decode and store a full list of pods, against plain typed structs dropped per page and the generated models."""

import gc
import json
import time
from collections.abc import Callable
from typing import Any

from kubernetes_asyncio.client import ApiClient, Configuration

from autoscaler.kube.kinds import POD
from autoscaler.model.policy import Resources
from autoscaler.observe.pods import PodStore
from autoscaler.observe.shapes import ShapeTable
from autoscaler.service.garbage import GarbagePolicy
from benchmarks.bars import Result
from benchmarks.synthetic import PAGE, pod_pages

PODS = 150_000
SMALLEST = 45_000
"""Below this the shapes, made once for each template, weigh more than in a large cluster."""
MODEL_SAMPLE = 2_000
ROUNDS = 5
STORE_BAR = 2.0
MODELS_BAR = 40.0


def run(scale: float) -> Result:
    """Seconds per pod as ratios inside one run, under the collector policy of the service."""
    with GarbagePolicy().in_force():
        return _measure(scale)


def _measure(scale: float) -> Result:
    count = max(SMALLEST, round(PODS * scale / PAGE) * PAGE)
    rounds = [(*_round(count), _generated_models_s_per_pod()) for _ in range(ROUNDS)]
    # Each side's best: what else the machine does only ever adds, and it need not hit all sides alike.
    plain_s, stored_s, size, models_s = (min(side) for side in zip(*rounds, strict=True))
    ratio, faster = stored_s / plain_s, models_s / (stored_s / count)
    return Result(
        id="B1",
        value=ratio,
        unit="x plain structs",
        bar=f"<= {STORE_BAR:g} and >= {MODELS_BAR:g} x faster than the generated models",
        ok=ratio <= STORE_BAR and faster >= MODELS_BAR,
        extra={
            "pods": count,
            "megabytes": round(size / 1e6, 1),
            "plain_us_per_pod": round(plain_s / count * 1e6, 2),
            "stored_us_per_pod": round(stored_s / count * 1e6, 2),
            "models_us_per_pod": round(models_s * 1e6, 1),
            "faster_than_models": round(faster, 1),
        },
    )


def _round(count: int) -> tuple[float, float, int]:
    """Processor seconds of the reference and of the subject, and the bytes that were decoded."""
    store: Any = PodStore(ShapeTable(Resources()))
    store.begin_relist()
    plain_s = stored_s = 0.0
    size = 0
    for number, page in enumerate(pod_pages(count)):
        size += len(page)
        # Reference and subject take turns in going first, so that both meet the same caches and the same noise.
        if number % 2:
            stored_s += _seconds(
                lambda page=page: store.relist_page(POD.page_decoder.decode(page).items or ())
            )
            plain_s += _seconds(lambda page=page: POD.page_decoder.decode(page))
        else:
            plain_s += _seconds(lambda page=page: POD.page_decoder.decode(page))
            stored_s += _seconds(
                lambda page=page: store.relist_page(POD.page_decoder.decode(page).items or ())
            )
    stored_s += _seconds(lambda: store.commit_relist("2000000"))
    return plain_s, stored_s, size


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _generated_models_s_per_pod() -> float:
    """What the client library's own typed list costs, deserialisation included."""
    pages = list(pod_pages(MODEL_SAMPLE))
    client = object.__new__(ApiClient)  # its constructor opens a session and wants a running loop
    client.configuration = Configuration()
    gc.collect()
    started = time.process_time()
    for page in pages:
        ApiClient._ApiClient__deserialize(client, json.loads(page), "V1PodList")  # type: ignore[attr-defined]  # noqa: SLF001
    return (time.process_time() - started) / MODEL_SAMPLE
