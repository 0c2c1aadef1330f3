"""D3: do the series name the pods that hold the devices; where they do not, which labels would."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from autoscaler.decide.world import accelerators
from autoscaler.model.cluster import PodRow
from autoscaler.model.findings import State
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.doctor.devices import devices_of
from autoscaler.service.doctor.gathered import Gathered, Labels, Monitor, Rows
from autoscaler.service.doctor.monitors import exporter_monitors
from autoscaler.service.doctor.outcome import Outcome, counted, skipped, some
from autoscaler.service.doctor.owner_labels import LabelMapping, candidates, stated
from autoscaler.service.doctor.store_checks import interval_ms, matches

_YOUNG_INTERVALS: Final = 2
_MAP_PODS: Final = (
    "let the exporter map devices to pods: DCGM_EXPORTER_KUBERNETES=true and the kubelet's pod-resources socket mounted; "
    "with DRA also the right to list resourceslices (NVIDIA/gpu-operator#2706)"
)


@dataclass(frozen=True)
class _Scene:
    """The pods that hold accelerators, those without any row among them, and the series."""

    holders: tuple[PodRow, ...]
    blind: tuple[PodRow, ...]
    rows: tuple[Rows, ...]


def check_attribution(seen: Gathered) -> Outcome:
    """D3: the share of pods with accelerators that have a series."""
    snapshot = seen.snapshot
    if snapshot is None:
        return skipped(f"the cluster could not be read: {seen.snapshot_fault}")
    holders = accelerator_pods(snapshot, seen, young_ms=_YOUNG_INTERVALS * interval_ms(seen))
    if not holders:
        return skipped("no running pod holds an accelerator for long enough")
    if not seen.store.rows:
        return skipped(f"no GPU series (D2), so none of {len(holders)} pods with accelerators has any")
    attributed = set(snapshot.holders.pod.tolist())
    by_index = {id(pod): index for index, pod in enumerate(snapshot.pods)}
    blind = tuple(pod for pod in holders if by_index[id(pod)] not in attributed)
    share = 1 - len(blind) / len(holders)
    found = (
        f"{len(holders) - len(blind)} of {len(holders)} pods with accelerators have a series ({share:.0%})"
    )
    if not blind:
        return Outcome("ok", found)
    enough = blind != holders and share >= seen.policy.evidence.fleet_coverage
    state: State = "warning" if enough else "failed"
    rows = tuple(_trusted(seen))
    why, fix = _explain(_Scene(holders, blind, rows), exporter_monitors(seen.server.monitors.monitors))
    names = some(f"{pod.namespace}/{pod.name}" for pod in blind)
    astray = {reason: count for reason, count in snapshot.telemetry.unattributed.items() if count}
    lost = f"; series that are no pod's: {counted(list(astray.items()))}" if astray else ""
    return Outcome(state, f"{found}; without: {names}{lost}; {why}", fix)


def accelerator_pods(snapshot: Snapshot, seen: Gathered, *, young_ms: int) -> tuple[PodRow, ...]:
    """Running pods that hold an accelerator, less those too young to have a sample."""
    return tuple(
        pod
        for pod in snapshot.pods
        if pod.node
        and pod.phase == "Running"
        and pod.started_ms >= 0
        and snapshot.taken_ms - pod.started_ms >= young_ms
        and snapshot.workloads[pod.workload].ref in seen.judged
        and accelerators(snapshot.shapes[pod.shape].demand, seen.policy.resources)
    )


def _trusted(seen: Gathered) -> Iterator[Rows]:
    pattern = seen.policy.evidence.source_job
    for rows in seen.store.rows:
        kept = tuple(row for row in rows.rows if not pattern or matches(pattern, row.get("job", "")))
        if kept:
            yield Rows(profile=rows.profile, metric=rows.metric, rows=kept)


def _explain(scene: _Scene, monitors: Sequence[Monitor]) -> tuple[str, str]:
    """The cause that fits most of the blind pods, and its mend."""
    if not scene.rows:
        return "no series of a trusted job", "see D2"
    best = max((_best(scene, rows) for rows in scene.rows), key=lambda found: found[0])
    fits, mapping, rows = best
    profile = rows.profile.name
    if fits and mapping is not None:
        why = f"the label `{mapping.pod}` of {rows.metric} names {fits} of them, and profile {profile} does not read it"
        fix = f"in a copy of profile {profile}, which replaces it in AUTOSCALER_PROFILES_DIR=<folder>:\nowners:\n{mapping.as_line()}"
        if mapping.pod.startswith("exported_"):
            fix += f"\nor {_honor(monitors)}"
        return why, fix
    return _unfit(scene, max(scene.rows, key=lambda one: len(one.rows)), monitors)


def _best(scene: _Scene, rows: Rows) -> tuple[int, LabelMapping | None, Rows]:
    """The mapping that a profile does not have and that names the most of the pods that are blind."""
    blind = {(pod.namespace, pod.name) for pod in scene.blind}
    alone = _unique_names(scene)
    best: tuple[int, LabelMapping | None] = (0, None)
    names = {name for row in rows.rows for name, value in row.items() if value}
    read = {(mapping.pod, mapping.namespace) for mapping in stated(rows.profile)}
    read |= {(mapping.pod, "") for mapping in stated(rows.profile)}
    for mapping in candidates(names):
        if (mapping.pod, mapping.namespace) in read:
            continue
        fits = len(_named(mapping, rows.rows, blind, alone))
        if fits > best[0]:
            best = (fits, mapping)
    return (*best, rows)


def _unique_names(scene: _Scene) -> dict[str, tuple[str, str]]:
    """Pods by name alone, where only one has it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for pod in scene.holders:
        found.setdefault(pod.name, []).append((pod.namespace, pod.name))
    return {name: pods[0] for name, pods in found.items() if len(pods) == 1}


def _named(
    mapping: LabelMapping,
    rows: Sequence[Labels],
    wanted: set[tuple[str, str]],
    alone: dict[str, tuple[str, str]],
) -> set[tuple[str, str]]:
    owners = {mapping.owner(row) for row in rows}
    if mapping.namespace:
        return owners & wanted
    return {alone[name] for _, name in owners if name in alone} & wanted


def _unfit(scene: _Scene, rows: Rows, monitors: Sequence[Monitor]) -> tuple[str, str]:
    """No label names them: what do the labels say instead."""
    if not rows.profile.owners:
        return (
            f"profile {rows.profile.name} names boards and no pods",
            "an exporter that maps devices to pods (dcgm-exporter), or devices by ResourceClaim",
        )
    own = [_owner(rows, row) for row in rows.rows]
    named = sorted({f"{namespace}/{name}" for namespace, name in own if name})
    if not named:
        return (
            f"all {len(rows.rows)} series of {rows.metric} have an empty owner",
            _MAP_PODS,
        )
    known = {f"{pod.namespace}/{pod.name}" for pod in scene.holders}
    foreign = [name for name in named if name not in known]
    instances = {row.get("instance", "") for row in rows.rows}
    if foreign and len(foreign) <= len(instances) and len(foreign) == len(named):
        return (
            f"the owner labels name {some(foreign)}, which holds no accelerator: the scrape target itself",
            _honor(monitors),
        )
    clusters = sorted({row["cluster"] for row in rows.rows if row.get("cluster")})
    if len(clusters) > 1 and foreign:
        return (
            f"the series are of {len(clusters)} clusters ({some(clusters)})",
            f"in a copy of profile {rows.profile.name}, which replaces it in AUTOSCALER_PROFILES_DIR=<folder>:\nmatch: {{cluster: {clusters[0]}}}",
        )
    devices = {device for device, _ in devices_of(rows)}
    nowhere = sum(1 for _, name in own if not name)
    return (
        f"{len(devices)} devices, {len(named)} named owners, {nowhere} series without owner",
        "look at the exporters of their nodes: is one down, or has it lost its pod mapping?",
    )


def _owner(rows: Rows, row: Labels) -> tuple[str, str]:
    return next((m.owner(row) for m in stated(rows.profile) if row.get(m.pod)), ("", ""))


def _honor(monitors: Sequence[Monitor]) -> str:
    careless = [monitor for monitor in monitors if not monitor.honors_labels]
    if careless:
        one = careless[0]
        place = "endpoints" if one.kind == "ServiceMonitor" else "podMetricsEndpoints"
        patch = f'[{{"op":"add","path":"/spec/{place}/0/honorLabels","value":true}}]'
        return f"kubectl -n {one.namespace} patch {one.kind.lower()} {one.name} --type=json -p '{patch}'"
    return "honorLabels: true on the exporter's ServiceMonitor endpoint (honor_labels: true in a scrape configuration)"
