"""Tenants hear of what was done and refused, once, and never so much that it is in the way."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
from service_fakes import RIGHT_SIZE, ManualClock, RecordingLog, settle

from autoscaler.act.contract import AuthorityLostError, Outcome
from autoscaler.kube.errors import Forbidden
from autoscaler.model.plan import PodRef
from autoscaler.model.reasons import Reason
from autoscaler.service.event_recorder import BURST, REFUSED_S, SAME_S, EventRecorder
from autoscaler.service.telemetry import Metrics

DONE = Outcome("done")
REFUSED = Outcome("refused", "web-pdb: 1 would go, 0 allowed", Reason.DISRUPTION_BUDGET)


class Sent:
    """Stands in for the session: keeps what is created, or raises what it is told to."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.error: Exception | None = None

    async def write(self, _verb: str, path: str, body: Any, _decoder: Any, **_options: Any) -> None:
        if self.error is not None:
            raise self.error
        self.bodies.append({"path": path, **json.loads(msgspec.json.encode(body))})


class Desk:
    """A recorder with everything around it."""

    def __init__(self, may_write: Callable[[], float] = lambda: 10.0) -> None:
        self.clock, self.log, self.sent = ManualClock(), RecordingLog(), Sent()
        self.metrics = Metrics(clock=self.clock.monotonic_s)
        session: Any = self.sent
        log: Any = self.log
        self.recorder = EventRecorder(
            session, instance="pod-a", may_write=may_write, clock=self.clock, metrics=self.metrics, log=log
        )

    async def deliver(self) -> list[dict[str, Any]]:
        task = asyncio.create_task(self.recorder.run())
        await settle()
        task.cancel()
        await asyncio.wait({task})
        return self.sent.bodies

    def dropped(self, cause: str) -> float:
        value = self.metrics.registry.get_sample_value(
            "gpu_autoscaler_events_dropped_total", {"cause": cause}
        )
        return value or 0.0


async def test_an_act_is_told_on_the_workload_with_what_changed_and_why() -> None:
    desk = Desk()
    desk.recorder.tell(RIGHT_SIZE, DONE)

    (event,) = await desk.deliver()

    assert event["path"] == "/apis/events.k8s.io/v1/namespaces/team/events"
    assert event["regarding"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "team",
        "name": "web",
        "uid": "uid-web",
    }
    assert (event["reason"], event["action"], event["type"]) == ("RightSized", "RightSize", "Normal")
    assert event["note"] == "nvidia.com/gpu 2 -> 1: needs at most 0.9 boards, holds 2"


async def test_an_eviction_is_told_on_the_workload_and_on_the_pod() -> None:
    desk = Desk()
    evict = msgspec.structs.replace(
        RIGHT_SIZE,
        method="make-room",
        lever="evict",
        reason=Reason.MADE_ROOM,
        pod=PodRef("team", "web-0", "uid-0"),
    )
    desk.recorder.tell(evict, DONE)

    told = await desk.deliver()

    assert [(event["regarding"]["kind"], event["regarding"]["uid"]) for event in told] == [
        ("Deployment", "uid-web"),
        ("Pod", "uid-0"),
    ]


async def test_a_refusal_is_a_warning_and_told_once_in_a_quarter_of_an_hour() -> None:
    desk = Desk()
    for _ in range(3):
        desk.recorder.tell(RIGHT_SIZE, REFUSED)
        await desk.clock.advance(SAME_S)
    (event,) = await desk.deliver()
    await desk.clock.advance(REFUSED_S)
    desk.recorder.tell(RIGHT_SIZE, REFUSED)

    assert (event["reason"], event["type"]) == ("DisruptionBudget", "Warning")
    assert len(await desk.deliver()) == 2


async def test_what_has_to_be_thought_again_is_not_told() -> None:
    desk = Desk()
    for outcome in (
        Outcome("conflict", "x"),
        Outcome("unknown", "x"),
        Outcome("gone", "x"),
        Outcome("refused", "x"),
    ):
        desk.recorder.tell(RIGHT_SIZE, outcome)

    assert await desk.deliver() == []


async def test_a_flood_is_cut_and_counted() -> None:
    desk = Desk()
    for index in range(BURST + 5):
        desk.recorder.tell(msgspec.structs.replace(RIGHT_SIZE, uid=f"uid-{index}"), DONE)

    assert len(await desk.deliver()) == BURST
    assert desk.dropped("rate") == 5


async def test_nothing_is_written_without_the_authority() -> None:
    def lost() -> float:
        raise AuthorityLostError("gone")

    desk = Desk(may_write=lost)
    desk.recorder.tell(RIGHT_SIZE, DONE)

    assert await desk.deliver() == []
    assert desk.dropped("authority") == 1


async def test_an_error_is_logged_once_and_ends_nothing() -> None:
    desk = Desk()
    desk.sent.error = Forbidden(403, "Forbidden", "may not create events")
    for index in range(3):
        desk.recorder.tell(msgspec.structs.replace(RIGHT_SIZE, uid=f"uid-{index}"), DONE)
    await desk.deliver()

    assert desk.log.events() == ["event_not_written"]
    assert desk.dropped("error") == 3
