import asyncio

from service_fakes import ManualClock

from autoscaler.kube import wire
from autoscaler.service.triggers import Alarm, NodeSensor, ObservedStore, PodSensor, QuotaSensor


class Bell(Alarm):
    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.rung: list[str] = []

    def ring(self, reason: str) -> None:
        self.rung.append(reason)


def pod(*, reason: str = "Unschedulable", resource: str = "nvidia.com/gpu", uid: str = "u1") -> wire.Pod:
    return wire.Pod(
        metadata=wire.ObjectMeta(name="p", namespace="n", uid=uid),
        spec=wire.PodSpec(
            containers=[wire.Container(name="c", resources=wire.ResourceRequirements(limits={resource: "1"}))]
        ),
        status=wire.PodStatus(
            conditions=[wire.Condition(type="PodScheduled", status="False", reason=reason)]
        ),
    )


def quota(used: str, hard: str = "8") -> wire.ResourceQuota:
    return wire.ResourceQuota(
        metadata=wire.ObjectMeta(name="q", namespace="n"),
        status=wire.ResourceQuotaStatus(
            hard={"requests.nvidia.com/gpu": hard}, used={"requests.nvidia.com/gpu": used}
        ),
    )


def test_a_gpu_pod_that_turns_unschedulable_rings_once() -> None:
    bell = Bell()
    sensor = PodSensor(bell, ("nvidia.com/",))

    for _ in range(3):
        sensor.changed(pod())

    assert bell.rung == ["pod-unschedulable"]


def test_a_pod_that_became_schedulable_and_stuck_again_rings_again() -> None:
    bell = Bell()
    sensor = PodSensor(bell, ("nvidia.com/",))

    for reason in ("Unschedulable", "SchedulerError", "Unschedulable"):
        sensor.changed(pod(reason=reason))

    assert bell.rung == ["pod-unschedulable"] * 2


def test_a_stuck_pod_without_accelerators_is_none_of_our_business() -> None:
    bell = Bell()

    PodSensor(bell, ("nvidia.com/",)).changed(pod(resource="memory"))

    assert bell.rung == []


def test_a_quota_rings_when_it_has_more_room_and_only_then() -> None:
    bell = Bell()
    sensor = QuotaSensor(bell)

    for used, hard in (
        ("6", "8"),
        ("7", "8"),
        ("7", "8"),
        ("5", "8"),
        ("5", "9"),
        ("nonsense", "9"),
        ("9", "9"),
    ):
        sensor.changed(quota(used, hard))

    assert bell.rung == ["quota-freed", "quota-freed"]


def test_a_node_rings_when_it_closes_or_is_gone() -> None:
    bell = Bell()
    sensor = NodeSensor(bell)
    node = wire.Node(metadata=wire.ObjectMeta(name="n1"))
    closed = wire.Node(metadata=wire.ObjectMeta(name="n1"), spec=wire.NodeSpec(unschedulable=True))

    for state in (node, closed, closed, node):
        sensor.changed(state)
    sensor.gone(node)

    assert bell.rung == ["node-closed", "node-gone"]


class ListStore:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin_relist(self) -> None:
        self.calls.append("begin")

    def relist_page(self, _items: object, /) -> None:
        self.calls.append("page")

    def commit_relist(self, resource_version: str, /) -> None:
        self.calls.append(f"commit {resource_version}")

    def apply(self, _obj: object, /) -> None:
        self.calls.append("apply")

    def delete(self, _obj: object, /) -> None:
        self.calls.append("delete")


def test_an_observed_store_passes_everything_on_counts_and_senses_changes_only() -> None:
    bell, inner = Bell(), ListStore()
    store: ObservedStore[wire.Pod] = ObservedStore(inner, PodSensor(bell, ("nvidia.com/",)))

    store.begin_relist()
    store.relist_page([pod()])
    store.commit_relist("7")
    store.apply(pod())
    store.delete(pod())

    assert inner.calls == ["begin", "page", "commit 7", "apply", "delete"]
    assert store.events == {"apply": 1, "delete": 1, "relist": 1}
    assert bell.rung == ["pod-unschedulable"]


async def test_the_timer_wakes_without_events() -> None:
    clock = ManualClock()
    waiting = asyncio.ensure_future(Alarm(clock).wait(timer_s=60, debounce_s=2))
    await clock.advance(59.9)
    assert not waiting.done()

    await clock.advance(0.2)

    assert await waiting == ((), None)


async def test_events_are_gathered_for_a_debounce_and_wake_before_the_timer() -> None:
    clock = ManualClock()
    alarm = Alarm(clock)
    waiting = asyncio.ensure_future(alarm.wait(timer_s=60, debounce_s=2))
    await clock.advance(5)
    alarm.ring("node-gone")
    await clock.advance(1)
    alarm.ring("quota-freed")
    alarm.ring("node-gone")
    assert not waiting.done()

    await clock.advance(1)

    assert await waiting == (("node-gone", "quota-freed"), 5.0)


async def test_an_event_during_a_cycle_starts_the_next_one_at_once() -> None:
    clock = ManualClock()
    alarm = Alarm(clock)
    alarm.ring("node-gone")
    waiting = asyncio.ensure_future(alarm.wait(timer_s=60, debounce_s=2))

    await clock.advance(2)

    assert (await waiting)[0] == ("node-gone",)
