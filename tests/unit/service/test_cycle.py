import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from build import Spec, boards, cluster
from service_fakes import ManualClock, RecordingLog

from autoscaler.decide import plan as decide_plan
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.cycle import Cycle, Sources
from autoscaler.service.policy_file import PolicySource
from autoscaler.service.telemetry import Metrics
from autoscaler.service.triggers import Alarm

HEAD = "apiVersion: gpu-autoscaler.io/v1alpha1\nkind: Policy\n"
IDLE = cluster(Spec(seen=(boards(0.0, 0.0),), gpus=2))


class Bench:
    """A cycle over scripted sources; `calls` tells what was asked, in order, and on which thread."""

    def __init__(self, policy_path: Path | None = None, **changes: Any) -> None:
        self.clock = ManualClock()
        self.log = RecordingLog()
        self.metrics = Metrics(clock=self.clock.monotonic_s)
        self.alarm = Alarm(self.clock)
        self.calls: list[tuple[str, bool]] = []
        self.block = ""
        self.snapshots: list[Snapshot] = [IDLE]
        self.policies: list[Policy] = []
        loop_thread = threading.current_thread()

        def noted(name: str) -> None:
            self.calls.append((name, threading.current_thread() is loop_thread))

        async def query(policy: Policy) -> str:
            noted("query")
            self.policies.append(policy)
            return "series"

        def freeze() -> str:
            noted("freeze")
            return "stores"

        def assemble(frozen: str, series: str, _policy: Policy) -> Snapshot:
            noted("assemble")
            assert (frozen, series) == ("stores", "series")
            return self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]

        def decide(snapshot: Snapshot, policy: Policy, now_ms: int) -> Any:
            noted("decide")
            assert now_ms == snapshot.taken_ms
            return decide_plan(snapshot, policy, now_ms)

        sources: dict[str, Callable[..., Any]] = {
            "query": query,
            "freeze": freeze,
            "assemble": assemble,
            "decide": decide,
        }
        self.cycle: Cycle[str, str] = Cycle(
            sources=Sources(blocked=lambda: self.block, **{**sources, **changes}),
            policy=PolicySource(policy_path, {}),
            alarm=self.alarm,
            clock=self.clock,
            metrics=self.metrics,
            log=self.log,  # type: ignore[arg-type]  # records instead of writing
            every_s=60,
            debounce_s=2,
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"gpu_autoscaler_{name}", labels)

    def rested(self, cycles: int = 1) -> bool:
        """Whether so many cycles ended and the next one is waited for."""
        latest = self.cycle.latest
        return latest is not None and latest.sequence == cycles and self.clock.sleeping


async def until(condition: Callable[[], bool]) -> None:
    """Worker threads finish in their own time; give them some real milliseconds."""
    for _ in range(400):
        await asyncio.sleep(0.002)
        if condition():
            return
    raise AssertionError("it never came true")


async def test_steps_come_in_order_and_only_thinking_leaves_the_loop() -> None:
    bench = Bench()

    await bench.cycle.once(trigger="timer", since_s=None)

    assert bench.calls == [("query", True), ("freeze", True), ("assemble", False), ("decide", False)]


async def test_nothing_is_asked_or_decided_before_every_store_is_full() -> None:
    bench = Bench()
    bench.block = "watch/Pod: the first full list is not complete"
    task = asyncio.ensure_future(bench.cycle.run())
    await bench.clock.advance(30)
    assert bench.calls == []
    assert bench.cycle.waiting_for == bench.block
    assert bench.log.events() == ["waiting"]

    bench.block = ""
    await bench.clock.advance(1)
    await until(lambda: bench.cycle.latest is not None)

    assert bench.cycle.waiting_for == ""
    task.cancel()


async def test_stores_that_are_lost_later_stop_decisions_again() -> None:
    bench = Bench()
    task = asyncio.ensure_future(bench.cycle.run())
    await until(bench.rested)
    bench.block = "watch/Pod: not read for 2m"

    await bench.clock.advance(61)

    assert len(bench.calls) == 4
    assert bench.cycle.waiting_for == bench.block
    task.cancel()


async def test_the_timer_starts_cycles_and_an_event_starts_one_sooner() -> None:
    bench = Bench()
    task = asyncio.ensure_future(bench.cycle.run())
    await until(bench.rested)
    await bench.clock.advance(10)
    bench.alarm.ring("node-gone")
    await bench.clock.advance(2)
    await until(lambda: bench.rested(2))
    await bench.clock.advance(60)
    await until(lambda: bench.rested(3))

    assert bench.value("cycles_total", trigger="event") == 1
    assert bench.value("cycles_total", trigger="timer") == 2
    assert bench.value("event_to_decision_seconds_sum") == 2.0
    task.cancel()


async def test_the_same_input_gives_the_same_plan_and_logs_each_decision_once() -> None:
    bench = Bench()
    bench.snapshots = [
        cluster(
            Spec(seen=(boards(0.1, 0.0),) * 3, gpus=2, annotations={"gpu-autoscaler.io/allowed-gpus": "1,2"})
        )
    ]

    first = await bench.cycle.once(trigger="timer", since_s=None)
    second = await bench.cycle.once(trigger="timer", since_s=None)

    assert first.plan == second.plan
    assert first.decision_id.split("-")[1] == second.decision_id.split("-")[1]
    assert first.decision_id != second.decision_id
    assert len(bench.log.events()) - bench.log.events().count("plan") == 1


async def test_a_bad_new_policy_keeps_the_old_one_in_force(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}need: {{margin: 0.2}}\n")
    bench = Bench(policy_path=path)
    await bench.cycle.once(trigger="timer", since_s=None)
    path.write_text(f"{HEAD}need: {{margin: banana}}\n")

    await bench.cycle.once(trigger="timer", since_s=None)

    assert [policy.need.margin for policy in bench.policies] == [0.2, 0.2]
    assert "policy_refused" in bench.log.events()


async def test_a_defect_ends_the_cycle_visibly() -> None:
    def broken(*_: Any) -> Snapshot:
        raise RuntimeError("a defect")

    bench = Bench(assemble=broken)

    with pytest.raises(RuntimeError, match="a defect"):
        await bench.cycle.run()


async def test_metrics_tell_what_was_decided_without_naming_workloads() -> None:
    bench = Bench()

    await bench.cycle.once(trigger="timer", since_s=None)

    names = {
        name
        for family in bench.metrics.registry.collect()
        for sample in family.samples
        for name in sample.labels
        if family.name != "gpu_autoscaler_breaker_open"
    }
    assert not names & {"pod", "uid", "name", "workload", "namespace"}
    assert bench.value("gpus_requested", resource="nvidia.com/gpu") == 2
    assert bench.value("cycle_step_duration_seconds_count", step="assemble") == 1
    assert bench.value("decision_duration_seconds_count") == 1


@pytest.mark.parametrize(
    ("modes", "mode"),
    [
        ("default: recommend", "recommend"),
        ("default: apply", "apply"),
        ("default: recommend\n  rightSize: apply", "apply"),
        ("default: apply\n  rightSize: recommend", "recommend"),
    ],
)
async def test_a_decision_counts_under_the_mode_of_its_own_kind(
    tmp_path: Path, modes: str, mode: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}modes:\n  {modes}\n")
    bench = Bench(path)

    await bench.cycle.once(trigger="timer", since_s=None)

    counts = {
        one: bench.value("decisions_total", action="right-size", reason="RightSized", mode=one)
        for one in ("observe", "recommend", "apply")
    }
    assert counts == {**dict.fromkeys(counts, 0), mode: 1}


async def test_series_exist_before_anything_happened() -> None:
    bench = Bench()

    assert bench.value("candidates", verdict="hold", reason="EvidenceAbsent") == 0
    assert bench.value("decisions_total", action="right-size", reason="RightSized", mode="recommend") == 0
    assert bench.value("ready", check="prometheus") == 0
