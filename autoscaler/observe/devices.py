"""Devices of resource claims become part of what pods demand and what nodes offer, as if a device plugin had them.

A device that is held exists, whether or not a slice shows it; one that nobody holds is on offer only while its pool is
complete and what it shares with others (a board with its slices) is not used up. Capacity comes from these objects
alone, never from counting series. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from autoscaler.model.cluster import NodeRow
from autoscaler.model.resources import Vector, add, maximum
from autoscaler.model.shapes import PodShape
from autoscaler.observe.claims import (
    ClaimRow,
    CounterKey,
    DeviceId,
    DeviceRow,
    Given,
    newest_slices,
)
from autoscaler.observe.device_names import DeviceNames
from autoscaler.observe.pods import Entry, NodeUse, PlainPod, PodClaims, PodEntry, PodsView
from autoscaler.observe.shapes import DEVICE_CLASS_PREFIX
from autoscaler.observe.stores import StoresView


def with_devices(view: StoresView) -> StoresView:
    """The stores with claimed devices counted: each once, as the accelerator resource that it stands for.

    A pod that has claims and no accelerator is a plain one from here on. A view that was counted stays as it is.
    """
    if view.claims.counted or not (view.pods.claimants or view.claims.claims or view.claims.slices):
        return view
    devices = _Devices(view)
    pods, plain = _counted_pods(view.pods, devices)
    offer = _offer(devices)
    return msgspec.structs.replace(
        view,
        pods=PodsView(pods, _taken(view.pods.taken, plain, offer.parked), view.pods.claimants),
        nodes=_nodes(view.nodes, offer.offered),
        claims=msgspec.structs.replace(view.claims, counted=True),
    )


class _User(NamedTuple):
    """A pod that uses a claim."""

    pod: str
    node: str


class _Devices:
    """Look-ups over one view."""

    def __init__(self, view: StoresView) -> None:
        self.names = DeviceNames(view.claims)
        self.pools = newest_slices(view.claims)
        self.rows: dict[DeviceId, DeviceRow] = {
            (*pool, device.name): device
            for pool, slices in self.pools.items()
            for row in slices
            for device in row.devices
        }
        self.claims: dict[str, ClaimRow] = {
            key: view.claims.claims[key] for key in sorted(view.claims.claims)
        }
        self.pods: dict[str, PodEntry] = {}
        self.claims_of: dict[str, dict[str, None]] = {}
        self.users: dict[str, list[_User]] = {}
        self._join(view.pods)
        self.shared = self._shared()

    def _join(self, pods: PodsView) -> None:
        """Which pods use which claims: those that name them, and those for which they are reserved."""
        for pod in sorted(pods.claimants):
            entry = pods.pods[pod]
            if isinstance(entry, PodEntry):
                stated = entry.claims or PodClaims()
                names = (*stated.named, *filter(None, (stated.extended,)))
                self._add(pod, entry, (f"{entry.namespace}/{name}" for name in names))
        for key, row in self.claims.items():
            for name, uid in row.pods:
                pod = f"{row.namespace}/{name}"
                bearer = pods.pods.get(pod)
                if isinstance(bearer, PodEntry) and bearer.uid == uid:
                    self._add(pod, bearer, (key,))
        for pod, named in self.claims_of.items():
            for key in named:
                if key in self.claims:
                    self.users.setdefault(key, []).append(_User(pod, self.pods[pod].node))

    def _add(self, pod: str, entry: PodEntry, claims: Iterable[str]) -> None:
        self.pods[pod] = entry
        self.claims_of.setdefault(pod, {}).update((key, None) for key in claims)

    def _shared(self) -> frozenset[DeviceId]:
        """Devices that several pods use at a time, through one claim or through several."""
        seated: dict[DeviceId, int] = {}
        for key, row in self.claims.items():
            pods = sum(1 for user in self.users.get(key, ()) if user.node)
            for given in row.given or ():
                seated[given.device] = seated.get(given.device, 0) + (pods or 1)
        return frozenset(device for device, count in seated.items() if count > 1)

    def name_of(self, row: ClaimRow, given: Given) -> str:
        """The accelerator resource that a device stands for, as a whole; empty where it is none."""
        return self.names.of_device(given.device[0], self.rows.get(given.device), row.class_of(given))

    def counted_as(self, row: ClaimRow, given: Given) -> str:
        """The same for one of the pods that use the device."""
        name = self.name_of(row, given)
        return self.names.share_of(name) if name and (given.shared or given.device in self.shared) else name

    def demand_of(self, row: ClaimRow) -> Vector:
        """What a pod takes by a claim: what was given; until then what is asked for, the first of alternatives."""
        found: Vector = {}
        if row.given is not None:
            for given in row.given:
                name = self.counted_as(row, given)
                found[name] = found.get(name, 0) + 1
        else:
            first = {wanted.name.partition("/")[0]: wanted for wanted in reversed(row.wanted)}
            for wanted in first.values():
                name = self.names.of_class(wanted.device_class, wanted.profile)
                found[name] = found.get(name, 0) + wanted.count
        return {name: amount for name, amount in sorted(found.items()) if name and amount}


def _counted_pods(view: PodsView, devices: _Devices) -> tuple[dict[str, Entry], list[PlainPod]]:
    """All pods with their devices, and those of them that hold and want none."""
    pods, plain = dict(view.pods), []
    shapes: dict[tuple[int, bool, tuple[tuple[str, int], ...]], PodShape] = {}
    for key, claimed in devices.claims_of.items():
        entry = devices.pods[key]
        claims = [devices.claims[name] for name in claimed if name in devices.claims]
        demand = _demand(entry, claims, devices)
        if not any(devices.names.accelerates(name) for name, amount in demand.items() if amount):
            pods[key] = without = PlainPod(entry.node, demand)
            plain.append(without)
            continue
        content = (id(entry.shape), bool(claims), tuple(sorted(demand.items())))
        if content not in shapes:
            claiming = bool(claims) or entry.shape.resource_claims
            shapes[content] = msgspec.structs.replace(entry.shape, demand=demand, resource_claims=claiming)
        pods[key] = msgspec.structs.replace(entry, shape=shapes[content])
    return pods, plain


def _demand(entry: PodEntry, claims: Iterable[ClaimRow], devices: _Devices) -> Vector:
    """A pod's demand with the devices of its claims.

    What a claim was made for is asked for twice, by the pod's extended resources and by the claim: the claim counts.
    A claim that the pod does not name, and that no template of it gave, was made for these.
    """
    stated = entry.claims or PodClaims()
    demand, claimed = dict(entry.shape.demand), Vector()
    for row in claims:
        held = devices.demand_of(row)
        if row.extended or not (row.templated or row.name in stated.named):
            if row.given is None:
                continue
            for name in stated.backed or tuple(held):
                demand.pop(name, None)
        claimed = add(claimed, held)
    for name in [name for name in demand if name.startswith(DEVICE_CLASS_PREFIX)]:
        known = devices.names.of_class(name.removeprefix(DEVICE_CLASS_PREFIX))
        amount = demand.pop(name)
        claimed = add(claimed, {known: amount} if known else {})
    return add(demand, claimed)


class _Offer(NamedTuple):
    """Devices by node, and those among them that are given out while no pod uses them."""

    offered: dict[str, Vector]
    parked: dict[str, Vector]


def _offer(devices: _Devices) -> _Offer:
    offer = _Offer({}, {})
    given_out: dict[DeviceId, None] = {}
    whole: set[tuple[DeviceId, str]] = set()
    for key, row in devices.claims.items():
        seats = [user for user in devices.users.get(key, ()) if user.node]
        for given in row.given or ():
            given_out[given.device] = None
            known = devices.rows.get(given.device)
            node = known.node if known is not None else ""
            name = devices.name_of(row, given)
            if not name:
                continue
            counted = devices.counted_as(row, given)
            for seat in seats:
                if counted != name or (given.device, name) not in whole:
                    _put(offer.offered, node or seat.node, counted)
                    whole.add((given.device, name))
            if not seats and node and (given.device, name) not in whole:
                _put(offer.offered, node, name)
                _put(offer.parked, node, name)
                whole.add((given.device, name))
    for node, name in _free(devices, given_out):
        _put(offer.offered, node, name)
    return offer


def _put(table: dict[str, Vector], node: str, name: str) -> None:
    vector = table.setdefault(node, {})
    vector[name] = vector.get(name, 0) + 1


def _free(devices: _Devices, given_out: Mapping[DeviceId, None]) -> Iterable[tuple[str, str]]:
    """Node and name of devices that could all be given out beside those that are: boards before their slices."""
    for pool, slices in devices.pools.items():
        if len(slices) != slices[0].slices:
            continue
        left: dict[CounterKey, int] = {}
        for row in slices:
            left.update(row.counters)
        waiting = []
        for device in (device for row in slices for device in row.devices):
            if (*pool, device.name) in given_out:
                _use_up(left, device)
            elif device.node and (name := devices.names.of_device(pool[0], device)):
                waiting.append((not devices.names.is_board(name), name, device.name, device))
        for _, name, _, device in sorted(waiting, key=lambda one: one[:3]):
            if _fits(left, device):
                _use_up(left, device)
                yield device.node, name


def _fits(left: Mapping[CounterKey, int], device: DeviceRow) -> bool:
    return device.uses is not None and all(
        amount <= left.get(counter, 0) for counter, amount in device.uses.items()
    )


def _use_up(left: dict[CounterKey, int], device: DeviceRow) -> None:
    for counter, amount in (device.uses or {}).items():
        left[counter] = left.get(counter, 0) - amount


def _taken(
    taken: Mapping[str, NodeUse], plain: Iterable[PlainPod], parked: Mapping[str, Vector]
) -> dict[str, NodeUse]:
    """What plain pods and idle claims take by node."""
    sums = dict(taken)
    for pod in plain:
        if pod.node:
            use = sums.get(pod.node, NodeUse({}, 0))
            sums[pod.node] = NodeUse(add(use.taken, pod.demand), use.pods + 1)
    for node, devices in parked.items():
        use = sums.get(node, NodeUse({}, 0))
        sums[node] = NodeUse(add(use.taken, devices), use.pods)
    return sums


def _nodes(nodes: Mapping[str, NodeRow], offered: Mapping[str, Vector]) -> dict[str, NodeRow]:
    """Nodes with their devices; where a device plugin offers the same resource, these are the same boards."""
    rows = dict(nodes)
    for key, row in nodes.items():
        if row.name in offered:
            allocatable = maximum(row.allocatable, offered[row.name])
            rows[key] = msgspec.structs.replace(row, allocatable=allocatable)
    return rows
