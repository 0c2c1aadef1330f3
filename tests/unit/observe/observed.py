"""Builders: wire objects and metric answers in a few words, with every value that matters visible in the test."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from autoscaler.kube import wire
from autoscaler.model.evidence import Source
from autoscaler.model.policy import Resources
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.answers import Answer
from autoscaler.observe.assemble import assemble
from autoscaler.observe.profiles import Profile, load_profiles
from autoscaler.observe.series import (
    NOTHING,
    BoardColumns,
    HistoryColumns,
    Positions,
    ProfileSeries,
    SeriesReading,
    SignalSeries,
    Sparse,
    WindowColumns,
    dense,
)
from autoscaler.observe.stores import Stores

GPU = "nvidia.com/gpu"
NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000
WINDOW_MS = 1_800_000
HISTORY_MS = 86_400_000
INTERVAL_MS = 15_000
FULL = WINDOW_MS // INTERVAL_MS
PROFILES: dict[str, Profile] = {
    p.name: p for p in load_profiles(Path(__file__).parents[3] / "config" / "profiles")
}
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"


def time_text(ms: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - only here

    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def owner(kind: str, name: str, *, api: str = "apps/v1", uid: str = "") -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


def spec(gpus: int = 1, *, cpu: str = "1", name: str = "main", **more: Any) -> dict[str, Any]:
    limits = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    return {"containers": [{"name": name, "resources": {"requests": limits, "limits": limits}}], **more}


def pod(name: str, *, namespace: str = "ml", gpus: int = 1, **more: Any) -> wire.Pod:
    """A running pod since long before the window; `more` are fields of the object's parts by their own names."""
    start_ms = more.pop("start_ms", NOW_MS - HISTORY_MS)
    document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": more.pop("uid", f"uid-{namespace}-{name}"),
            "creationTimestamp": time_text(start_ms),
            "labels": more.pop("labels", {}),
            "annotations": more.pop("annotations", {}),
            "ownerReferences": [more.pop("owner")] if "owner" in more else [],
        },
        "spec": {
            **spec(gpus, cpu=more.pop("cpu", "1")),
            "nodeName": more.pop("node", "node-1"),
            **more.pop("spec", {}),
        },
        "status": {
            "phase": more.pop("phase", "Running"),
            "startTime": time_text(start_ms),
            "conditions": more.pop("conditions", []),
        },
    }
    assert not more, f"unknown {more}"
    return msgspec.json.decode(msgspec.json.encode(document), type=wire.Pod)


def make(kind: type, name: str, *, namespace: str = "ml", uid: str = "", **parts: Any) -> Any:
    """Any other object: `metadata` is merged, `spec` and `status` are taken as they are."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        **parts.pop("metadata", {}),
    }
    return msgspec.json.decode(msgspec.json.encode({"metadata": metadata, **parts}), type=kind)


def deployment(name: str, *, gpus: int = 1, replicas: int = 1, **metadata: Any) -> wire.Deployment:
    return make(
        wire.Deployment,
        name,
        metadata=metadata,
        spec={"replicas": replicas, "template": {"spec": spec(gpus)}},
    )


def replica_set(name: str, *, of: str, uid: str = "") -> wire.ReplicaSet:
    return make(wire.ReplicaSet, name, uid=uid, metadata={"ownerReferences": [owner("Deployment", of)]})


def node(name: str, **labels: str) -> wire.Node:
    return make(
        wire.Node,
        name,
        namespace="",
        metadata={"labels": labels},
        status={"allocatable": {"cpu": "64", GPU: "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    )


@dataclass(frozen=True)
class Seen:
    """One series: its labels and what the store would say of it over the window (values as the store's text)."""

    labels: Mapping[str, str]
    peak: str = "0"
    mean: float | str | None = None
    low: str | None = None
    count: int = FULL
    covered: int | None = None
    newest_ms: int = NOW_MS
    busiest: str | None = None
    history_count: int = HISTORY_MS // INTERVAL_MS
    first_ms: int = NOW_MS - HISTORY_MS

    def total(self) -> str:
        mean = self.peak if self.mean is None else self.mean
        return str(float(mean) * self.count)


@dataclass(frozen=True)
class Scrape:
    """What one profile's queries answer: series by metric."""

    profile: str
    signals: Mapping[str, Sequence[Seen]] = field(default_factory=dict)
    used: Sequence[Seen] = ()
    free: Sequence[Seen] = ()
    power: Sequence[Seen] = ()
    past_used: Sequence[Seen] = ()
    reserved: Sequence[Seen] = ()
    total: Sequence[Seen] = ()
    energy: Sequence[Seen] = ()
    last_active: Sequence[Seen] = ()
    traffic: Mapping[str, Sequence[Seen]] = field(default_factory=dict)
    boards: Mapping[str, float] = field(default_factory=dict)


def vector(rows: Sequence[tuple[Mapping[str, str], str]]) -> Answer:
    """The answer of an instant query."""
    result = [{"metric": dict(sorted(labels.items())), "value": [NOW_S, text]} for labels, text in rows]
    return Answer(kind="vector", result=json.dumps(result, separators=(",", ":")).encode())


def series_of(scrape: Scrape, *, interval_ms: int = INTERVAL_MS) -> ProfileSeries:
    """The profile's series as the reader would hand them on."""
    profile = PROFILES[scrape.profile]
    positions = Positions(profile)

    def grouped(labels: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in labels.items() if key in profile.labels and value}

    def ask(rows: Sequence[Seen], value: Any) -> Sparse:
        pairs = [(grouped(row.labels), str(value(row))) for row in rows if value(row) is not None]
        return positions.collect(vector(pairs)) if pairs else NOTHING

    asked: dict[str, dict[str, tuple[Sparse, Any]]] = {}
    for metric, rows in scrape.signals.items():
        asked[metric] = {
            "maximum": (ask(rows, lambda r: r.peak), "max"),
            "minimum": (ask(rows, lambda r: r.peak if r.low is None else r.low), "min"),
            "mean": (ask(rows, lambda r: r.peak if r.mean is None else r.mean), "max"),
            "total": (ask(rows, Seen.total), "sum"),
            "count": (ask(rows, lambda r: r.count), "sum"),
            "newest": (ask(rows, lambda r: r.newest_ms / 1000), "max"),
            "covered": (ask(rows, lambda r: r.count if r.covered is None else r.covered), "max"),
            "h_p95": (ask(rows, lambda r: r.peak), "max"),
            "h_maximum": (ask(rows, lambda r: r.peak), "max"),
            "h_busiest": (ask(rows, lambda r: r.busiest or r.peak), "max"),
            "h_count": (ask(rows, lambda r: r.history_count), "max"),
            "h_first": (ask(rows, lambda r: r.first_ms / 1000), "min"),
            "h_total": (ask(rows, Seen.total), "sum"),
        }
    used, free, power, past_used, reserved, total, energy, active = (
        ask(rows, lambda r: r.peak)
        for rows in (
            scrape.used,
            scrape.free,
            scrape.power,
            scrape.past_used,
            scrape.reserved,
            scrape.total,
            scrape.energy,
            scrape.last_active,
        )
    )
    moved = [ask(scrape.traffic.get(t.metric, ()), lambda r: r.peak) for t in profile.traffic]
    length = len(positions)
    signals = []
    for signal in profile.signals:
        if signal.metric not in asked:
            continue
        columns = {
            name: dense(sparse, length, merge) for name, (sparse, merge) in asked[signal.metric].items()
        }
        signals.append(
            SignalSeries(
                source=Source(profile.name, signal.metric, interval_ms, interval_measured=True),
                signal=signal,
                window=WindowColumns(**{k: v for k, v in columns.items() if not k.startswith("h_")}),
                history=HistoryColumns(**{k[2:]: v for k, v in columns.items() if k.startswith("h_")}),
            )
        )
    return ProfileSeries(
        profile=profile,
        identities=positions.identities,
        nodes=positions.nodes,
        targets=positions.targets,
        beside=positions.beside,
        boards=BoardColumns(
            used=dense(used, length, "max"),
            least_used=dense(used, length, "min"),
            most_free=dense(free, length, "max"),
            reserved=dense(reserved, length, "max"),
            total=dense(total, length, "max"),
            power=dense(power, length, "max"),
            energy=dense(energy, length, "max"),
            energy_least=dense(energy, length, "max"),
            last_active=dense(active, length, "min"),
            past_used=dense(past_used, length, "max"),
            traffic=tuple(dense(sparse, length, "max") for sparse in moved),
        ),
        signals=tuple(signals),
        board_peaks=dict(scrape.boards),
    )


def reading(*scrapes: Scrape, interval_ms: int = INTERVAL_MS, **more: Any) -> SeriesReading:
    """A reading without faults at `NOW_MS`."""
    return SeriesReading(
        window_ms=WINDOW_MS,
        history_window_ms=HISTORY_MS,
        store_ms=NOW_MS,
        profiles=tuple(series_of(scrape, interval_ms=interval_ms) for scrape in scrapes),
        **more,
    )


def stores(*objects: Any) -> Stores:
    """Stores that hold these objects."""
    filled = Stores(Resources())
    for item in objects:
        filled.writers[type(item).__name__].apply(item)
    return filled


def snapshot(*objects: Any, series: SeriesReading | None = None) -> Snapshot:
    """The snapshot of these objects and this reading."""
    return assemble(stores(*objects).freeze(), series or reading(), now_ms=NOW_MS)


def board(
    uuid: str, pod_name: str = "", *, namespace: str = "ml", container: str = "main", **more: str
) -> dict[str, str]:
    """The labels of dcgm-exporter on a row of one board; no owner labels where no pod is named."""
    owned = {"pod": pod_name, "namespace": namespace, "container": container} if pod_name else {}
    return {"UUID": f"GPU-{uuid}", "hostname": "node-1", "instance": "10.0.0.1:9400", **owned, **more}
