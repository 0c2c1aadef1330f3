"""Clean worlds: nodes, workloads and the truth about every board, drawn from a seed and from nothing else.

A world is small on purpose (a few workloads on one or two nodes): what a corruption does to one unit must not be hidden
by what it does to forty others. Every name and device carries the world's job, so that no two worlds meet in one store.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

END_MS = 1_799_999_000_000
"""When all worlds are looked at: late in a two-hour block, so that the series of a world fill one block only."""
MINUTE_MS = 60_000
WINDOW_MS = 30 * MINUTE_MS
SPAN_MS = 35 * MINUTE_MS
DAY_MS = 24 * 60 * MINUTE_MS

Use = Literal["idle", "busy", "half", "bursty", "surplus", "whisper"]
"""A whisper is a server whose requests come and go between two scrapes: only its counter tells."""
Style = Literal["current", "exported", "uid"]
"""How owners are written: plain labels, `exported_*` beside the exporter's own, or plain labels with `pod_uid`."""

WHOLE = "nvidia.com/gpu"
SLICES = {"1g.10gb": 9_728, "3g.40gb": 40_120}
"""MIG profiles and their memory in MiB."""
BOARD_MIB = 81_225


@dataclass(frozen=True)
class Device:
    """A board or a slice: `slice_id` and `profile` are empty for a whole board."""

    uuid: str
    index: int
    node: str
    slice_id: str = ""
    profile: str = ""

    @property
    def size_mib(self) -> int:
        return SLICES[self.profile] if self.profile else BOARD_MIB


@dataclass(frozen=True)
class Unit:
    """A pod, what it does with its devices, and whether anybody could know that from the series."""

    name: str
    uid: str
    use: Use
    devices: tuple[Device, ...]
    started_ms: int
    burst: tuple[int, int, int] = (0, 1, 1)
    """Offset, length and period of bursts in ms."""
    active: int = 0
    """How many of its devices it uses."""
    level: float = 0.0
    known: bool = True
    believed: bool = True
    """Whether what its inference server says of itself can be relied on."""
    woke_ms: int = 0
    """From here on it works, whatever it did before; 0: it stays as it is."""

    @property
    def node(self) -> str:
        return self.devices[0].node


@dataclass(frozen=True)
class Work:
    """A workload and its pods."""

    name: str
    namespace: str
    kind: Literal["Deployment", "StatefulSet"]
    container: str
    image: str
    resource: str
    units: tuple[Unit, ...]
    annotations: dict[str, str] = field(default_factory=dict)
    serving: bool = False
    ports: tuple[int, ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class Node:
    """A node; `devices` has all that it offers, held or not."""

    name: str
    mig: bool
    devices: tuple[Device, ...]


@dataclass(frozen=True)
class World:
    """Everything that is true: what an exporter says of it is made elsewhere."""

    seed: int
    job: str
    interval_ms: int
    phase_ms: int
    style: Style
    metrics: frozenset[str]
    nodes: tuple[Node, ...]
    works: tuple[Work, ...]
    waiting: int = 0
    """Boards that a pod of high priority waits for; 0: nobody waits."""

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(unit for work in self.works for unit in work.units)

    def work_of(self, unit: Unit) -> Work:
        return next(work for work in self.works if unit in work.units)

    @property
    def times(self) -> tuple[int, ...]:
        """When an exporter is scraped."""
        last = END_MS - self.phase_ms
        return tuple(
            range(
                last - (SPAN_MS - self.phase_ms) // self.interval_ms * self.interval_ms,
                last + 1,
                self.interval_ms,
            )
        )


def activity(unit: Unit, board: int, at_ms: int, draw: Random) -> float:
    """The true activity of a unit's device at a time, 0 to 1; `draw` is asked for noise only where it works."""
    if unit.woke_ms and at_ms >= unit.woke_ms:
        return round(draw.uniform(0.7, 0.98), 6)
    match unit.use:
        case "idle" | "whisper":
            return 0.0
        case "bursty":
            offset, length, period = unit.burst
            return round(draw.uniform(0.5, 0.95), 6) if (at_ms + offset) % period < length else 0.0
        case "surplus" if board >= unit.active:
            return 0.0
        case _:
            return round(min(0.99, max(0.02, unit.level + draw.uniform(-0.04, 0.04))), 6)


def true_load(unit: Unit) -> float:
    """Boards' worth of work that the unit does on average."""
    match unit.use:
        case "idle" | "whisper":
            return 0.0
        case "bursty":
            _, length, period = unit.burst
            return 0.725 * length / period * len(unit.devices)
        case _:
            return unit.level * unit.active


def boards_needed(unit: Unit, *, target: float = 0.7) -> int:
    """The fewest boards that carry its load at the share that the policy aims at."""
    return max(1, math.ceil(true_load(unit) / target - 1e-9))


ALL = frozenset({"util", "engine", "used", "free", "power", "energy", "dram"})
"""What the exporter is configured to publish; some leave out one or the other."""
CONFIGURATIONS: tuple[frozenset[str], ...] = (
    ALL,
    ALL,
    ALL - {"util"},
    ALL - {"dram"},
    ALL - {"engine", "dram"},
)


def draw_world(seed: int, *, twin: str) -> World:
    """The world of a seed; `twin` ends its job's name and changes nothing else."""
    draw = Random(seed)
    job = f"w{seed:05d}{twin}"
    interval_ms = draw.choice((30_000, 30_000, 15_000))
    mig = draw.random() < 0.25
    metrics = ALL if mig else draw.choice(CONFIGURATIONS)
    names = [f"gpu-{job}-{n}.example.net" for n in range(draw.choice((1, 1, 2)))]
    nodes = [
        _node(job, name, number, mig=mig and number == 0, draw=draw) for number, name in enumerate(names)
    ]
    free = {node.name: list(node.devices) for node in nodes}
    works: list[Work] = []
    for number in range(draw.randint(3, 5)):
        work = _work(job, number, nodes, free, draw)
        if work is not None:
            works.append(work)
    return World(
        seed=seed,
        job=job,
        interval_ms=interval_ms,
        phase_ms=draw.randrange(0, interval_ms, 1000),
        style=draw.choice(("current", "exported", "uid")),
        metrics=metrics,
        nodes=tuple(nodes),
        works=tuple(works),
        waiting=draw.choice((0, 0, 0, 1, 2)) if not mig else 0,
    )


def _node(job: str, name: str, number: int, *, mig: bool, draw: Random) -> Node:
    if not mig:
        devices = [_board(job, name, number, index) for index in range(draw.choice((4, 8)))]
        return Node(name, mig=False, devices=tuple(devices))
    devices = []
    for index in range(2):
        board = _board(job, name, number, index)
        for slice_id, profile in (("2", "3g.40gb"), ("7", "1g.10gb"), ("8", "1g.10gb"), ("9", "1g.10gb")):
            devices.append(Device(board.uuid, index, name, slice_id, profile))
    return Node(name, mig=True, devices=tuple(devices))


def _board(job: str, node: str, number: int, index: int) -> Device:
    return Device(f"GPU-{job}-{number:04x}-4222-8333-{index:012d}", index, node)


def _work(
    job: str, number: int, nodes: Sequence[Node], free: dict[str, list[Device]], draw: Random
) -> Work | None:
    """A workload on what is left of one node, None where nothing fits."""
    node = draw.choice(nodes)
    left = free[node.name]
    profile = draw.choice(tuple(SLICES)) if node.mig else ""
    fitting = [device for device in left if device.profile == profile]
    size = 1 if node.mig else draw.choice((1, 1, 1, 2, 2, 4, 8))
    if size > len(fitting):
        size = 1
    replicas = draw.choice((1, 1, 1, 2, 3)) if size <= 2 else 1
    replicas = min(replicas, len(fitting) // size)
    if replicas < 1:
        return None
    kind = draw.choice(("Deployment", "Deployment", "StatefulSet"))
    name = f"app-{number}-{job}"
    serving = draw.random() < 0.3
    consent = draw.random() < 0.7
    units = []
    for ordinal in range(replicas):
        held = tuple(fitting[ordinal * size : (ordinal + 1) * size])
        for device in held:
            left.remove(device)
        pod = (
            f"{name}-{ordinal}" if kind == "StatefulSet" else f"{name}-7c9d5b6f8-{'bcdfg'[ordinal]}x{number}q"
        )
        units.append(_unit(pod, job, held, replicas, draw, serving=serving))
    annotations = {"gpu-autoscaler.io/role": draw.choice(("training", "batch"))} if not serving else {}
    annotations["gpu-autoscaler.io/min-replicas"] = "0"
    if consent and not node.mig:
        annotations["gpu-autoscaler.io/allowed-gpus"] = ",".join(str(n) for n in range(1, size + 1))
    return Work(
        name=name,
        namespace=f"{job}-{draw.choice(('vision', 'nlp'))}",
        kind=kind,
        container=f"main-{number}",
        image="registry.example/vllm:0.9" if serving else "registry.example/trainer:2",
        resource=f"nvidia.com/mig-{profile}" if node.mig else WHOLE,
        units=tuple(units),
        annotations=annotations,
        serving=serving,
        ports=(8000,) if serving else (),
        priority=draw.choice((0, 0, 100)),
    )


def _unit(
    name: str, job: str, held: tuple[Device, ...], replicas: int, draw: Random, *, serving: bool
) -> Unit:
    """Of several replicas each is idle or busy, so that it is plain which of them are needed."""
    uses: list[Use] = ["idle", "idle", "busy", "half", "bursty"] if replicas == 1 else ["idle", "busy"]
    if replicas == 1 and len(held) > 1:
        uses.append("surplus")
    uses += ["whisper"] if serving else []
    use = draw.choice(uses)
    length = draw.choice((90_000, 120_000, 180_000))
    period = draw.choice((8, 10)) * MINUTE_MS
    return Unit(
        name=name,
        uid=f"uid-{job}-{name}",
        use=use,
        devices=held,
        started_ms=END_MS - draw.choice((1, 3, 20)) * DAY_MS,
        burst=(draw.randrange(period), length, period),
        active={"idle": 0, "whisper": 0, "surplus": max(1, len(held) // 2)}.get(use, len(held)),
        level=0.45 if use == "half" else draw.uniform(0.72, 0.9),
    )
