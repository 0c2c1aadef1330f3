"""What starts a cycle before its timer does: events after which an answer may be different.

A GPU pod that turns unschedulable, a quota that frees something, a node that goes away. They are gathered for a short while
(the debounce), because one such event is seldom alone.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, Protocol

from autoscaler.kube.kinds import T
from autoscaler.kube.watch import StoreWriter
from autoscaler.kube.wire import Node, Pod, ResourceQuota
from autoscaler.model.quantity import QuantityError, parse_quantity
from autoscaler.service.clock import Clock


class Alarm:
    """Wakes the cycle; remembers why and since when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()
        self._reasons: dict[str, None] = {}
        self._since_s: float | None = None

    def ring(self, reason: str) -> None:
        """Something happened that may change the answer; ``reason`` is one of few fixed words."""
        if self._since_s is None:
            self._since_s = self._clock.monotonic_s()
        self._reasons[reason] = None
        self._rung.set()

    async def wait(self, *, timer_s: float, debounce_s: float) -> tuple[tuple[str, ...], float | None]:
        """Returns when the timer is over, or a debounce after an event: the reasons and the first one's time."""
        timer = asyncio.create_task(self._clock.sleep(timer_s), name="cycle-timer")
        rung = asyncio.create_task(self._rung.wait(), name="cycle-alarm")
        try:
            await asyncio.wait({timer, rung}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (timer, rung):
                task.cancel()
            await asyncio.gather(timer, rung, return_exceptions=True)
        if self._rung.is_set() and debounce_s > 0:
            await self._clock.sleep(debounce_s)
        reasons, since_s = tuple(self._reasons), self._since_s
        self._reasons, self._since_s = {}, None
        self._rung.clear()
        return reasons, since_s


class Sensor(Protocol):
    """Looks at the changes of one kind; must be quick, it runs between two socket reads."""

    def changed(self, obj: Any, /) -> None:
        """An object is new or changed."""

    def gone(self, obj: Any, /) -> None:
        """An object is gone."""


class ObservedStore(Generic[T]):
    """A store's writing side that also counts events and lets a sensor look at them."""

    def __init__(self, store: StoreWriter[T], sensor: Sensor | None = None) -> None:
        self._store = store
        self._sensor = sensor
        self.events = {"apply": 0, "delete": 0, "relist": 0}

    def begin_relist(self) -> None:
        """A full list starts."""
        self._store.begin_relist()

    def relist_page(self, items: Sequence[T], /) -> None:
        """Some of its objects."""
        self._store.relist_page(items)

    def commit_relist(self, resource_version: str, /) -> None:
        """It is complete. A relist rings no alarm: the timer covers what it brought."""
        self._store.commit_relist(resource_version)
        self.events["relist"] += 1

    def apply(self, obj: T, /) -> None:
        """An object is new or changed."""
        self._store.apply(obj)
        self.events["apply"] += 1
        if self._sensor is not None:
            self._sensor.changed(obj)

    def delete(self, obj: T, /) -> None:
        """An object is gone."""
        self._store.delete(obj)
        self.events["delete"] += 1
        if self._sensor is not None:
            self._sensor.gone(obj)


class PodSensor:
    """Rings when a pod that asks for accelerators turns unschedulable, or one that held some is gone."""

    def __init__(self, alarm: Alarm, accelerators: Sequence[str]) -> None:
        self._alarm = alarm
        self._accelerators = tuple(accelerators)
        self._stuck: set[str] = set()

    def changed(self, pod: Pod, /) -> None:
        """An update."""
        uid = pod.metadata.uid
        if not _unschedulable(pod):
            self._stuck.discard(uid)
        elif uid not in self._stuck and self._asks(pod):
            self._stuck.add(uid)
            self._alarm.ring("pod-unschedulable")

    def gone(self, pod: Pod, /) -> None:
        """A deletion."""
        self._stuck.discard(pod.metadata.uid)

    def _asks(self, pod: Pod) -> bool:
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            stated = container.resources
            if stated is None:
                continue
            for name in (*(stated.limits or ()), *(stated.requests or ())):
                if name.startswith(self._accelerators):
                    return True
        return False


class QuotaSensor:
    """Rings when a quota has more room than before."""

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm
        self._room: dict[str, dict[str, Any]] = {}

    def changed(self, quota: ResourceQuota, /) -> None:
        """An update."""
        key = f"{quota.metadata.namespace}/{quota.metadata.name}"
        before = self._room.get(key)
        now = _room(quota)
        self._room[key] = now
        if before is not None and any(room > before[name] for name, room in now.items() if name in before):
            self._alarm.ring("quota-freed")

    def gone(self, quota: ResourceQuota, /) -> None:
        """A deletion frees all of it."""
        self._room.pop(f"{quota.metadata.namespace}/{quota.metadata.name}", None)
        self._alarm.ring("quota-freed")


class NodeSensor:
    """Rings when a node is gone or stops taking pods."""

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm
        self._cordoned: set[str] = set()

    def changed(self, node: Node, /) -> None:
        """An update."""
        name = node.metadata.name
        if not node.spec.unschedulable:
            self._cordoned.discard(name)
        elif name not in self._cordoned:
            self._cordoned.add(name)
            self._alarm.ring("node-closed")

    def gone(self, node: Node, /) -> None:
        """A deletion."""
        self._cordoned.discard(node.metadata.name)
        self._alarm.ring("node-gone")


def sensors(alarm: Alarm, accelerators: Sequence[str]) -> dict[str, Sensor]:
    """The sensors by kind."""
    return {
        "Pod": PodSensor(alarm, accelerators),
        "ResourceQuota": QuotaSensor(alarm),
        "Node": NodeSensor(alarm),
    }


def _unschedulable(pod: Pod) -> bool:
    conditions = pod.status.conditions or ()
    return any(
        condition.type == "PodScheduled"
        and condition.status == "False"
        and condition.reason == "Unschedulable"
        for condition in conditions
    )


def _room(quota: ResourceQuota) -> dict[str, Any]:
    """Hard minus used for every key that can be read; a key that cannot is none of an alarm's business."""
    used = quota.status.used or {}
    room = {}
    for name, hard in (quota.status.hard or {}).items():
        try:
            room[name] = parse_quantity(hard) - parse_quantity(used.get(name, "0"))
        except QuantityError:
            continue
    return room
