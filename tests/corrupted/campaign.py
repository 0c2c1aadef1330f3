"""Runs worlds and their corrupted twins through the real reader on a real store, and counts.

All worlds of a batch live in one back-filled store, each under its own scrape job, which the policy pins.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from corrupted.case import Case
from corrupted.corruptions import corrupt
from corrupted.exporter import publish
from corrupted.faulty_client import FaultyClient
from corrupted.law import Found, found, harms
from corrupted.objects import stores_of
from corrupted.worlds import END_MS, SPAN_MS, WINDOW_MS, draw_world

from autoscaler.decide.planner import plan
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy, policy_from_dict
from autoscaler.observe.assemble import assemble
from autoscaler.observe.profiles import load_profiles
from autoscaler.observe.reader import SeriesReader, Spans
from autoscaler.observe.serving import load_serving_profiles
from devcluster.backfill import Series, backfilled_prometheus

FOLDER = Path(__file__).parents[2] / "config" / "profiles"
PROFILES = load_profiles(FOLDER)
SERVING = load_serving_profiles(FOLDER / "serving")
BATCH = 100
LEAST_FOUND = 0.95
READ_DEADLINE_S = 600.0


def eager_policy(job: str) -> Policy:
    """A policy under which everything that may act does: what is refused is refused for its evidence."""
    return policy_from_dict(
        {
            "evidence": {"sourceJob": job, "fleetCoverage": 0.0, "fleetFall": 1.0},
            "need": {"historyWindow": "35m", "confidenceUnit": "5m", "minConfidence": 1.0},
            "methods": {"allowZeroReplicas": True, "restartFactor": 0.0},
            "guards": {"cooldown": "0"},
            "budgets": {
                "inFlight": 1000,
                "actsPerCycle": 1000,
                "podsPerHour": 100_000,
                "fleetPerHour": 1.0,
                "fleetPerDay": 1.0,
                "namespaceShare": 1.0,
                "podsPerWorkload": 1.0,
            },
            "yield": {"idle": True, "lowerPriority": True},
            "modes": {"default": "apply"},
        }
    )


@dataclass
class Figures:
    """What a campaign found; `harmed` names each world by its seed, so that it can be drawn again."""

    worlds: int = 0
    clean: Found = field(default_factory=Found)
    corrupted: Found = field(default_factory=Found)
    acts: int = 0
    harmed: list[dict[str, Any]] = field(default_factory=list)
    missed: list[dict[str, Any]] = field(default_factory=list)
    corruptions: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict[str, Any]:
        return {
            "worlds": self.worlds,
            "harmful": len(self.harmed),
            "idle_units_found_in_clean_twins": round(self.clean.share, 4),
            "idle_units_in_clean_twins": self.clean.idle,
            "idle_units_acted_on_in_clean_twins": round(self.clean.acted / max(1, self.clean.idle), 4),
            "idle_units_found_in_corrupted_worlds": round(self.corrupted.share, 4),
            "idle_units_in_corrupted_worlds": self.corrupted.idle,
            "acts_in_corrupted_worlds": self.acts,
            "corruptions": dict(sorted(self.corruptions.items())),
            "refusals_in_corrupted_worlds": dict(self.reasons.most_common()),
        }

    @property
    def holds(self) -> bool:
        """The law, and the bar that keeps it from being held by refusing everything."""
        return not self.harmed and self.clean.share >= LEAST_FOUND


def twins(seed: int) -> tuple[Case, Case]:
    """A clean world and its corrupted twin, which differ in their job's name besides."""
    clean, other = draw_world(seed, twin="c"), draw_world(seed, twin="x")
    first = Case(clean, publish(clean, Random(f"{seed} exporter")))
    second = Case(other, publish(other, Random(f"{seed} exporter")))
    return first, corrupt(second, Random(f"{seed} corruption"))


def series_of(case: Case) -> list[Series]:
    """What is written into the store; series that became the same (a label was all that told them apart) are one."""
    merged: dict[tuple[str, frozenset[tuple[str, str]]], dict[int, float]] = {}
    for track in case.tracks:
        key = (track.metric, frozenset((name, value) for name, value in track.labels.items() if value))
        samples = merged.setdefault(key, {})
        for at_ms, value in track.samples:
            if at_ms <= END_MS:
                samples.setdefault(at_ms, value)
    return [
        Series(metric, dict(labels), sorted(samples.items())) for (metric, labels), samples in merged.items()
    ]


async def planned(case: Case, url: str) -> Plan:
    """What the service would do about a case."""
    policy = eager_policy(case.world.job)
    api_now_ms = END_MS - case.faults.skew_ms
    spans = Spans(window_ms=WINDOW_MS, history_ms=SPAN_MS, source_job=case.world.job)
    async with FaultyClient(url, at_ms=END_MS, faults=case.faults) as client:
        reader = SeriesReader(client, PROFILES, serving=SERVING, deadline_s=READ_DEADLINE_S)
        reading = await reader.read(spans, api_now_ms=lambda: api_now_ms)
    # The clock of this store stands still: how long this machine took to read it makes no sample older.
    reading = msgspec.structs.replace(reading, read_ms=0)
    view = stores_of(case.world, skew_ms=case.faults.skew_ms).freeze()
    snapshot = assemble(view, reading, now_ms=api_now_ms)
    return plan(snapshot, policy, api_now_ms)


async def run(seeds: Sequence[int], *, batch: int = BATCH) -> Figures:
    """Draws, reads and judges both twins of every seed."""
    figures = Figures()
    async for clean, corrupted, clean_plan, plan_found in _judged(seeds, batch):
        figures.worlds += 1
        figures.clean = figures.clean.plus(found(clean.world, clean_plan))
        figures.corrupted = figures.corrupted.plus(found(corrupted.world, plan_found))
        figures.acts += len(plan_found.actions)
        figures.corruptions.update(corrupted.names)
        figures.reasons.update(row.reason.value for row in plan_found.rows if row.verdict == "unknown")
        seed = clean.world.seed
        for case, its_plan in ((clean, clean_plan), (corrupted, plan_found)):
            if told := harms(case.world, its_plan):
                figures.harmed.append(
                    {"seed": seed, "corruptions": list(case.names), "notes": list(case.notes), "harm": told}
                )
        if found(clean.world, clean_plan).share < 1:
            rows = {row.workload.name: f"{row.verdict}: {row.detail}" for row in clean_plan.rows}
            figures.missed.append({"seed": seed, "rows": rows})
    return figures


async def _judged(seeds: Sequence[int], batch: int) -> AsyncIterator[tuple[Case, Case, Plan, Plan]]:
    for start in range(0, len(seeds), batch):
        drawn = await asyncio.to_thread(_drawn, seeds[start : start + batch])
        written = [series for pair in drawn for case in pair for series in series_of(case)]
        async with backfilled_prometheus(written) as url:
            for clean, corrupted in drawn:
                plans = await asyncio.gather(planned(clean, url), planned(corrupted, url))
                yield clean, corrupted, *plans


def _drawn(seeds: Sequence[int]) -> list[tuple[Case, Case]]:
    return [twins(seed) for seed in seeds]
