"""The real reader on a back-filled Prometheus: one scrape job for each world, one moment at which all are looked at."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from autoscaler.decide.planner import plan
from autoscaler.kube.kinds import KINDS
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy, Resources, policy_from_dict
from autoscaler.observe.assemble import assemble
from autoscaler.observe.profiles import load_profiles
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.reader import SeriesReader, Spans
from autoscaler.observe.serving import load_serving_profiles
from autoscaler.observe.stores import Stores

END_MS = 1_799_999_000_000
"""Late in a two-hour block, so that one block holds every window."""
MINUTE_MS = 60_000
WINDOW_MS = 30 * MINUTE_MS
SPAN_MS = 35 * MINUTE_MS
INTERVAL_MS = 15_000
TIMES = tuple(range(END_MS - SPAN_MS, END_MS + 1, INTERVAL_MS))

_FOLDER = Path(__file__).parents[2] / "config" / "profiles"
PROFILES = load_profiles(_FOLDER)
SERVING = load_serving_profiles(_FOLDER / "serving")
ENERGY = frozenset(profile.energy for profile in PROFILES if profile.energy)
"""Counters that move by themselves for as long as anybody reads a board."""


def eager_policy(job: str) -> Policy:
    """A policy that trusts this job and lets everything act that may: what is refused is refused for its evidence."""
    wide = ("fleetPerHour", "fleetPerDay", "namespaceShare", "podsPerWorkload")
    return policy_from_dict(
        {
            "evidence": {"sourceJob": job, "fleetCoverage": 0.0, "fleetFall": 1.0},
            "need": {"historyWindow": "35m", "confidenceUnit": "5m", "minConfidence": 1.0},
            "methods": {"restartFactor": 0.0},
            "budgets": {
                "inFlight": 1000,
                "actsPerCycle": 1000,
                "podsPerHour": 100_000,
                **dict.fromkeys(wide, 1.0),
            },
            "modes": {"default": "apply"},
        }
    )


def stores_of(objects: Iterable[dict[str, Any]]) -> Stores:
    """Stores that hold these documents."""
    stores = Stores(Resources())
    for document in objects:
        kind = str(document["kind"])
        stores.writers[kind].apply(
            msgspec.json.decode(msgspec.json.encode(document), type=KINDS[kind].struct)
        )
    return stores


async def planned(url: str, job: str, objects: Sequence[dict[str, Any]]) -> Plan:
    """What the service would do with these objects on the series of a job."""
    spans = Spans(window_ms=WINDOW_MS, history_ms=SPAN_MS, source_job=job)
    async with PrometheusClient(url) as client:
        reader = SeriesReader(client, PROFILES, serving=SERVING, at_ms=END_MS)
        reading = await reader.read(spans, api_now_ms=lambda: None)
    assert reading.fault == ""
    # The clock stands still here: how long this machine took to read makes no sample older.
    reading = msgspec.structs.replace(reading, read_ms=0)
    return plan(assemble(stores_of(objects).freeze(), reading, now_ms=END_MS), eager_policy(job), END_MS)
