"""Board readings as Prometheus text, shaped like the real exporters.

The `dcgm` profile has the label set of dcgm-exporter: a board that nobody holds has no pod labels at all.
The `seed` profile is one series per pod, in percent, as the mean over its boards.
"""

import math
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from devcluster.exporter.load import UNOPENED_MEMORY_MIB, Profile

DRIVER_VERSION = "570.133.20"
_BOARD_NAMESPACE = uuid.UUID("6f2b1f3c-5d0e-5c7a-9a44-0f5f6c1f8f10")
_FIRST_BUS = 0x10

_IDLE_W = 58.0
_LOADED_MEMORY_W = 4.0
_FULL_ENGINE_W = 335.0


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds a board."""

    namespace: str
    pod: str
    container: str
    profiles: tuple[Profile, ...]


@dataclass(frozen=True, kw_only=True)
class BoardReading:
    """What one board shows at a scrape."""

    node: str
    index: int
    model: str
    memory_mib: int
    engine: float
    used_memory_mib: int
    energy_mj: int
    holder: Holder | None


def board_uuid(node: str, index: int) -> str:
    """The board's identity, the same in every run."""
    return f"GPU-{uuid.uuid5(_BOARD_NAMESPACE, f'{node}/{index}')}"


def power_w(engine: float, used_memory_mib: int) -> float:
    """Board power as it follows from activity and loaded memory."""
    loaded = _LOADED_MEMORY_W if used_memory_mib > UNOPENED_MEMORY_MIB else 0.0
    return _IDLE_W + loaded + _FULL_ENGINE_W * engine


def render(readings: Sequence[BoardReading]) -> str:
    """The whole exposition."""
    dcgm = [one for one in readings if one.holder is None or "dcgm" in one.holder.profiles]
    return "".join([*_dcgm_families(dcgm), *_seed_family(readings)])


def _dcgm_families(readings: Sequence[BoardReading]) -> Iterable[str]:
    labels = [_dcgm_labels(one) for one in readings]
    yield _family(
        "DCGM_FI_DEV_GPU_UTIL",
        "Busy time of the board, percent.",
        "gauge",
        labels,
        [str(math.ceil(round(one.engine * 100, 6))) for one in readings],
    )
    yield _family(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "Compute engine busy share, 0 to 1.",
        "gauge",
        labels,
        [f"{one.engine:.6f}" for one in readings],
    )
    yield _family(
        "DCGM_FI_DEV_FB_USED",
        "Device memory in use, MiB.",
        "gauge",
        labels,
        [str(one.used_memory_mib) for one in readings],
    )
    yield _family(
        "DCGM_FI_DEV_FB_FREE",
        "Device memory not in use, MiB.",
        "gauge",
        labels,
        [str(one.memory_mib - one.used_memory_mib) for one in readings],
    )
    yield _family(
        "DCGM_FI_DEV_POWER_USAGE",
        "Board power, watt.",
        "gauge",
        labels,
        [f"{power_w(one.engine, one.used_memory_mib):.6f}" for one in readings],
    )
    yield _family(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "Energy since boot, millijoule.",
        "counter",
        labels,
        [str(one.energy_mj) for one in readings],
    )


def _seed_family(readings: Iterable[BoardReading]) -> Iterable[str]:
    by_pod: dict[tuple[str, str], list[float]] = {}
    for one in readings:
        if one.holder is not None and "seed" in one.holder.profiles:
            by_pod.setdefault((one.holder.namespace, one.holder.pod), []).append(one.engine)
    yield _family(
        "gpu_gpu_utilization",
        "Mean use of the pod's boards, percent.",
        "gauge",
        [_labels({"pod": pod, "namespace": namespace}) for namespace, pod in by_pod],
        [f"{100 * fmean(engines):.4f}" for engines in by_pod.values()],
    )


def _family(name: str, text: str, kind: str, labels: Sequence[str], values: Sequence[str]) -> str:
    if not values:
        return ""
    rows = "".join(f"{name}{{{label}}} {value}\n" for label, value in zip(labels, values, strict=True))
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{rows}"


def _dcgm_labels(reading: BoardReading) -> str:
    labels = {
        "gpu": str(reading.index),
        "UUID": board_uuid(reading.node, reading.index),
        "pci_bus_id": f"00000000:{_FIRST_BUS + reading.index:02X}:00.0",
        "device": f"nvidia{reading.index}",
        "modelName": reading.model,
        "hostname": reading.node,
        "DCGM_FI_DRIVER_VERSION": DRIVER_VERSION,
    }
    if reading.holder is not None:
        labels |= {
            "pod": reading.holder.pod,
            "namespace": reading.holder.namespace,
            "container": reading.holder.container,
        }
    return _labels(labels)


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
