"""What exporters publish of a world: dcgm-exporter, label for label what the fixtures show, and vLLM in its own pods."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from corrupted.worlds import END_MS, SPAN_MS, Device, Unit, World, activity

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
USED = "DCGM_FI_DEV_FB_USED"
FREE = "DCGM_FI_DEV_FB_FREE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
NAMES = {
    "util": UTIL,
    "engine": ENGINE,
    "dram": DRAM,
    "used": USED,
    "free": FREE,
    "power": POWER,
    "energy": ENERGY,
}
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
CACHE = "vllm:kv_cache_usage_perc"
REQUESTS = "vllm:request_success_total"
SERVER_INTERVAL_MS = 30_000
PROFILING = frozenset({ENGINE, DRAM})
Samples = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Track:
    """One series and what it is about: the device (`uuid/slice`), its node, and the pod that holds it by name.

    A server's series are about no device.
    """

    metric: str
    labels: dict[str, str]
    samples: Samples
    device: str
    node: str
    pod: str = ""

    def but(self, **labels: str) -> "Track":
        """The same series with some labels changed; an empty text is kept, as an exporter would write it."""
        return replace(self, labels=self.labels | labels)


def device_key(device: Device) -> str:
    return f"{device.uuid}/{device.slice_id}" if device.slice_id else device.uuid


def publish(world: World, draw: Random) -> tuple[Track, ...]:
    """The series of all devices of all nodes."""
    held = {device: (unit, board) for unit in world.units for board, device in enumerate(unit.devices)}
    tracks: list[Track] = []
    shares: dict[str, list[list[float]]] = {}
    boards: dict[str, Device] = {}
    for node in world.nodes:
        for device in node.devices:
            unit, board = held.get(device, (None, 0))
            shown = [activity(unit, board, at, draw) if unit else 0.0 for at in world.times]
            tracks.extend(_device_tracks(world, device, unit, shown, draw))
            shares.setdefault(device.uuid, []).append(shown)
            boards[device.uuid] = device
    for uuid, parts in shares.items():
        device = boards[uuid]
        owner = None if device.slice_id else held.get(device, (None, 0))[0]
        tracks.extend(_board_tracks(world, device, owner, parts, draw))
    for work in world.works:
        for unit in work.units if work.serving else ():
            tracks.extend(_server_tracks(world, unit, draw))
    return tuple(tracks)


def _server_tracks(world: World, unit: Unit, draw: Random) -> Iterator[Track]:
    """What a unit's inference server says of itself; the scrape adds pod and namespace."""
    labels = {
        "engine": "0",
        "model_name": "acme/chat-8b",
        "pod": unit.name,
        "namespace": world.work_of(unit).namespace,
        "job": f"{world.job}-vllm",
        "instance": f"10.43.0.7:8000-{unit.name}",
    }
    last = END_MS - world.phase_ms % SERVER_INTERVAL_MS
    times = range(last - SPAN_MS // SERVER_INTERVAL_MS * SERVER_INTERVAL_MS, last + 1, SERVER_INTERVAL_MS)
    at_work = [activity(unit, 0, at, draw) > 0 for at in times]
    served, requests = float(draw.randrange(10**5)), []
    for works in at_work:
        served += draw.randrange(3, 40) if works or (unit.use == "whisper" and draw.random() < 0.3) else 0
        requests.append(served)
    columns = {
        RUNNING: [float(works * draw.randrange(1, 20)) for works in at_work],
        WAITING: [float(works * draw.randrange(5)) for works in at_work],
        CACHE: [works * 0.5 for works in at_work],
        REQUESTS: requests,
    }
    for metric, values in columns.items():
        samples = tuple(zip(times, values, strict=True))
        yield Track(metric, labels, samples, "", unit.node, unit.name)


def _device_tracks(
    world: World, device: Device, unit: Unit | None, shown: list[float], draw: Random
) -> Iterator[Track]:
    labels = _labels(world, device, unit, sliced=True)
    base = draw.randrange(1_000, device.size_mib * 3 // 4) if unit else draw.randrange(0, 20)
    used = [float(base)] * len(shown)
    values = {
        "engine": shown,
        "dram": [round(share * 0.6, 6) for share in shown],
        "used": used,
        "free": [device.size_mib - amount for amount in used],
    }
    if not device.slice_id:
        values["util"] = [float(round(share * 100)) if share else 0.0 for share in shown]
    for name, column in values.items():
        if name in world.metrics:
            samples = tuple(zip(world.times, column, strict=True))
            yield Track(
                NAMES[name], labels, samples, device_key(device), device.node, unit.name if unit else ""
            )


def _board_tracks(
    world: World, device: Device, unit: Unit | None, parts: list[list[float]], draw: Random
) -> Iterator[Track]:
    """Power and energy are the board's: on a board in MIG mode nobody is named on them."""
    labels = _labels(world, device, unit, sliced=False)
    idle_watts = draw.uniform(48, 75)
    power = [
        round(
            idle_watts
            + 330 * min(1.0, sum(column) / (1 if len(parts) == 1 else 2))
            + draw.uniform(-1.5, 1.5),
            3,
        )
        for column in zip(*parts, strict=True)
    ]
    counter, energy = float(draw.randrange(10**9, 10**12)), []
    for watts in power:
        counter += round(watts * world.interval_ms)
        energy.append(counter)
    for name, column in (("power", power), ("energy", energy)):
        if name in world.metrics:
            samples = tuple(zip(world.times, column, strict=True))
            yield Track(NAMES[name], labels, samples, device.uuid, device.node, unit.name if unit else "")


def _labels(world: World, device: Device, unit: Unit | None, *, sliced: bool) -> dict[str, str]:
    number = [node.name for node in world.nodes].index(device.node)
    labels = {
        "gpu": str(device.index),
        "UUID": device.uuid,
        "pci_bus_id": f"00000000:{0x10 + device.index:02X}:00.0",
        "device": f"nvidia{device.index}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "DCGM_FI_DRIVER_VERSION": "570.133.20",
        "job": world.job,
        "instance": f"10.42.{number}.19:9400",
    }
    if sliced and device.slice_id:
        labels |= {"GPU_I_ID": device.slice_id, "GPU_I_PROFILE": device.profile}
    labels["Hostname" if world.style == "exported" else "hostname"] = device.node
    owner = owner_labels(world, unit) if unit else {}
    if world.style != "exported":
        return labels | owner
    target = {"pod": f"dcgm-exporter-{number}", "namespace": "monitoring", "container": "exporter"}
    return labels | target | {"service": "dcgm-exporter", "endpoint": "metrics"} | owner


def owner_labels(world: World, unit: Unit) -> dict[str, str]:
    """The labels that name a unit, in the world's style."""
    work = world.work_of(unit)
    owner = {"pod": unit.name, "namespace": work.namespace, "container": work.container}
    if world.style == "exported":
        return {f"exported_{name}": value for name, value in owner.items()}
    return owner | ({"pod_uid": unit.uid} if world.style == "uid" else {})


def owner_names(world: World) -> tuple[str, ...]:
    """The labels that name an owner in the world's style."""
    if world.style == "exported":
        return ("exported_pod", "exported_namespace", "exported_container")
    return (
        ("pod", "namespace", "container", "pod_uid")
        if world.style == "uid"
        else ("pod", "namespace", "container")
    )
