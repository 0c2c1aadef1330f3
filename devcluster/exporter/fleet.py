"""The fleet as the exporter sees it: boards, holders, loads and energy at any moment.

No I/O and no clock of its own: events, loads and the time come in, readings and a state to keep come out.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from devcluster.exporter.allocation import BoardAllocation, BoundPod, HeldBoard
from devcluster.exporter.exposition import BoardReading, Holder, board_uuid, power_w
from devcluster.exporter.load import NO_ACTIVITY, BoardActivity, WorkloadLoad, divide, is_visible


class Declaration(msgspec.Struct, frozen=True):
    """A load and the time from which it counts."""

    load: WorkloadLoad
    declared_s: float
    time_scale: float = 1.0

    def scenario_s(self, now_s: float) -> float:
        """The time since the declaration in the scenario's own seconds."""
        return max(now_s - self.declared_s, 0.0) * self.time_scale


class KeptState(msgspec.Struct):
    """What survives a restart of the exporter."""

    held: dict[str, tuple[str, tuple[HeldBoard, ...]]] = {}
    declarations: list[Declaration] = []
    energy_mj: dict[str, float] = {}


class BoardView(msgspec.Struct, frozen=True):
    """Who holds a board, as the exporter tells it to tests."""

    node: str
    index: int
    uuid: str
    namespace: str
    pod: str
    pod_uid: str
    container: str


@dataclass(frozen=True)
class _BoardState:
    activity: BoardActivity
    load: WorkloadLoad | None
    is_visible: bool


class Fleet:
    """Boards and what they do."""

    def __init__(self, kept: KeptState) -> None:
        self.allocation = BoardAllocation(kept.held)
        self._declarations = {_identity(one.load): one for one in kept.declarations}
        self._energy_mj = defaultdict(float, kept.energy_mj)
        self._energy_counted_s: float | None = None

    def declare(self, loads: Iterable[WorkloadLoad], *, now_s: float, time_scale: float) -> None:
        """Take loads; a load for a workload that has one replaces it."""
        for load in loads:
            self._declarations[_identity(load)] = Declaration(load, now_s, time_scale)

    def keep(self) -> KeptState:
        """What a later exporter needs to go on as if nothing had happened."""
        return KeptState(
            held=dict(self.allocation.held),
            declarations=list(self._declarations.values()),
            energy_mj=dict(self._energy_mj),
        )

    def board_views(self) -> list[BoardView]:
        """Every held board with its holder."""
        return [
            BoardView(node, index, board_uuid(node, index), pod.namespace, pod.name, pod.uid, container)
            for node in sorted(self.allocation.nodes)
            for index, (pod, container) in sorted(self.allocation.holders_on(node).items())
        ]

    def readings(self, now_s: float) -> list[BoardReading]:
        """What every board of the fleet shows now; boards without series are left out."""
        states = self._board_states(now_s)
        self._count_energy(states, now_s)
        return [
            self._reading(node_name, index, holders.get(index), states.get((node_name, index)))
            for node_name, node in sorted(self.allocation.nodes.items())
            for holders in [self.allocation.holders_on(node_name)]
            for index in range(node.total)
            if (state := states.get((node_name, index))) is None or state.is_visible
        ]

    def _board_states(self, now_s: float) -> dict[tuple[str, int], _BoardState]:
        by_load: dict[tuple[str, str, str], list[BoundPod]] = defaultdict(list)
        states: dict[tuple[str, int], _BoardState] = {}
        for pod in self.allocation.pods.values():
            identity = self._load_identity(pod)
            if identity is not None and pod.is_running:
                by_load[identity].append(pod)
            elif identity is not None:
                load = self._declarations[identity]
                visible = is_visible(load.load, load.scenario_s(now_s))
                states |= self._states(pod, [], load.load, is_visible=visible)
        for identity, pods in by_load.items():
            declared = self._declarations[identity]
            at_s = declared.scenario_s(now_s)
            visible = is_visible(declared.load, at_s)
            pods.sort(key=lambda pod: (pod.created_at, pod.name))
            counts = [len(self.allocation.boards_of(pod.uid)) for pod in pods]
            for pod, activities in zip(pods, divide(declared.load, counts, at_s), strict=True):
                states |= self._states(pod, activities, declared.load, is_visible=visible)
        return states

    def _states(
        self, pod: BoundPod, activities: list[BoardActivity], load: WorkloadLoad, *, is_visible: bool
    ) -> dict[tuple[str, int], _BoardState]:
        boards = self.allocation.boards_of(pod.uid)
        padded = activities + [NO_ACTIVITY] * (len(boards) - len(activities))
        return {
            (pod.node, board.index): _BoardState(activity, load, is_visible)
            for board, activity in zip(boards, padded, strict=True)
        }

    def _load_identity(self, pod: BoundPod) -> tuple[str, str, str] | None:
        for kind, name in pod.workloads:
            if (pod.namespace, kind, name) in self._declarations:
                return (pod.namespace, kind, name)
        return None

    def _count_energy(self, states: dict[tuple[str, int], _BoardState], now_s: float) -> None:
        counted_s, self._energy_counted_s = self._energy_counted_s, now_s
        if counted_s is None:
            return
        elapsed_s = max(now_s - counted_s, 0.0)
        for name, node in self.allocation.nodes.items():
            for index in range(node.total):
                state = states.get((name, index))
                activity = state.activity if state is not None else NO_ACTIVITY
                power = power_w(activity.engine, activity.memory_mib)
                self._energy_mj[board_uuid(name, index)] += power * elapsed_s * 1000

    def _reading(
        self, node_name: str, index: int, holder: tuple[BoundPod, str] | None, state: _BoardState | None
    ) -> BoardReading:
        node = self.allocation.nodes[node_name]
        activity = state.activity if state is not None else NO_ACTIVITY
        load = state.load if state is not None else None
        return BoardReading(
            node=node_name,
            index=index,
            model=node.model,
            memory_mib=node.memory_mib,
            engine=activity.engine,
            used_memory_mib=activity.memory_mib,
            energy_mj=int(self._energy_mj[board_uuid(node_name, index)]),
            holder=None
            if holder is None
            else Holder(
                namespace=holder[0].namespace,
                pod=holder[0].name,
                container=holder[1],
                profiles=load.profiles if load is not None else ("dcgm",),
            ),
        )


def _identity(load: WorkloadLoad) -> tuple[str, str, str]:
    return (load.namespace, load.kind, load.name)
