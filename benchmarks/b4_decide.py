"""B4: one whole cycle of deciding over the largest cluster, and how it grows from a tenth of it.

Processor time of one thread: deciding is one function of a snapshot and waits for nothing.
"""

import gc
import time

from autoscaler.decide import plan
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from benchmarks.bars import Result
from benchmarks.snapshots import policy, snapshot

PODS = 150_000
SMALLER = 10
ROUNDS = 5
BAR_S = 1.0
GROWTH_BAR = 11.0


def run(scale: float) -> Result:
    """Seconds of the quickest of a few rounds, large and small in turn; the bar in seconds is scaled, growth is not."""
    pods = max(15_000, round(PODS * scale))
    bar_s = BAR_S * pods / PODS
    large, small = snapshot(pods), snapshot(pods // SMALLER)
    made: Plan = plan(large, policy(), large.taken_ms)
    rounds = [(_seconds(large), min(_seconds(small) for _ in range(SMALLER))) for _ in range(ROUNDS)]
    value, smaller = (min(column) for column in zip(*rounds, strict=True))
    growth = value / smaller
    return Result(
        id="B4",
        value=value,
        unit="CPU-s",
        bar=f"<= {bar_s:g} and <= {GROWTH_BAR:g} x a cluster of a tenth",
        ok=value <= bar_s and growth <= GROWTH_BAR and made.fleet.coverage > 0.9,
        extra={
            "pods": pods,
            "boards": made.fleet.boards,
            "workloads": made.fleet.workloads,
            "coverage": made.fleet.coverage,
            "actions": len(made.actions),
            "growth": round(growth, 2),
            "slowest_s": round(max(seconds for seconds, _ in rounds), 3),
            "bar_at_full_size": f"<= {BAR_S:g}",
        },
    )


def _seconds(one: Snapshot) -> float:
    """As in the service, no collection falls into it: the collector rests while a cycle thinks."""
    rules = policy()
    gc.collect()
    gc.disable()
    try:
        started = time.thread_time()
        plan(one, rules, one.taken_ms)
        return time.thread_time() - started
    finally:
        gc.enable()
