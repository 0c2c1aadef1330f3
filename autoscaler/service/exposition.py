"""Judges one scrape of an exporter offline: what would be made of these series if they had filled the evidence window.

The way is the live one from the first query to the verdict: the reader asks its own queries, of a store that has nothing but
this text; objects go into the same stores; the same rules judge. Only what one scrape cannot show is left out, and said.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from autoscaler.decide.assess import assess
from autoscaler.decide.evidence import demand_of, reason_of
from autoscaler.decide.world import Unit, World, accelerators
from autoscaler.model.duration import format_duration
from autoscaler.model.evidence import ACTIVITY_SCALE, Measured, Observation, ServingUse
from autoscaler.model.exposition import DeviceUnowned, ExpositionReport, PodJudged
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.exposition import Exposition, parse_exposition
from autoscaler.observe.object_files import Objects, ObjectsError, fill_stores, read_objects
from autoscaler.observe.profiles import Profile
from autoscaler.observe.queries import covered_part_ms
from autoscaler.observe.reader import SeriesReader, Spans
from autoscaler.observe.serving import ServingProfile
from autoscaler.observe.still_store import StillStore
from autoscaler.observe.stores import Stores
from autoscaler.service.exposition_series import Claims, metrics_of, profiles_read, signals_of
from autoscaler.service.faults import ServiceError
from autoscaler.service.frozen import FrozenCluster, assemble_frozen
from autoscaler.service.peers import exporter_profiles, serving_profiles, spans_of
from autoscaler.service.settings import Settings

_NOW_MS: Final = 1_767_225_600_000
"""The moment of judgement, 2026-01-01: any would do, and a fixed one makes equal input give equal output."""
_EARLIEST_MS: Final = 978_307_200_000
"""2001-01-01: no pod is older, since the reader believes no earlier time of a sample."""
_SAMPLES_PER_PART: Final = 10
_SCRAPE_LABELS: Final = ("job", "instance")
"""What a scrape adds: a text without them comes straight from an exporter."""
_NAMED: Final = 20
"""Bad lines, faults and names that are told one by one."""
_MAX_BYTES: Final = 512 * 1024 * 1024
_STDIN: Final = "-"


async def judge_files(
    text_file: Path, objects_file: Path | None, settings: Settings, policy: Policy
) -> ExpositionReport:
    """`judge_exposition` of files, `-` for standard input; raises a `ServiceError` for one that cannot be read."""
    text = await asyncio.to_thread(_read_file, text_file)
    objects = await asyncio.to_thread(_read_file, objects_file) if objects_file else None
    profiles, serving = await exporter_profiles(settings), await serving_profiles(settings)
    return await judge_exposition(text, objects, profiles, policy, serving=serving)


async def judge_exposition(
    text: str,
    objects: str | None,
    profiles: Sequence[Profile],
    policy: Policy,
    *,
    serving: Sequence[ServingProfile] = (),
) -> ExpositionReport:
    """What would be made of an exporter's text and, where given, of Kubernetes objects; equal input, equal report.

    Raises a `ServiceError` when the objects are no Kubernetes objects; a bad line of the text is a note.
    """
    exposition = parse_exposition(text)
    raw = not exposition.has_label(*_SCRAPE_LABELS)
    used = [_still(profile, raw=raw) for profile in profiles]
    known: list[Profile | ServingProfile] = [*profiles, *serving]
    store = StillStore(exposition.samples, now_ms=_NOW_MS, interval_ms=_interval_ms(policy))
    reader = SeriesReader(store, used, serving=serving, at_ms=_NOW_MS)
    reading = await reader.read(_spans(policy, raw=raw), api_now_ms=lambda: _NOW_MS)
    reading = msgspec.structs.replace(reading, read_ms=0)
    claims = Claims.of(reading)
    read = _objects(objects) if objects is not None else claims.assumed_objects(policy.resources)
    read, assumed = claims.with_assumed_devices(read, policy.resources)
    stores = Stores(policy.resources)
    faults = fill_stores(stores, read, started=_started(policy), uid_of=claims.uid_of)
    frozen = FrozenCluster(stores=stores.freeze(), now_ms=_NOW_MS, access=(), server_version="")
    snapshot = assemble_frozen(frozen, reading, policy)
    signals = await signals_of(store, used, serving, snapshot, reading)
    telemetry = snapshot.telemetry
    return ExpositionReport(
        profiles=profiles_read(known, exposition, reading),
        pods=tuple(
            msgspec.structs.replace(pod, signals=signals.get((pod.namespace, pod.pod), ()))
            for pod in _judged(World(snapshot, policy, _NOW_MS))
        ),
        dropped=_dropped(telemetry.dropped, exposition),
        unowned=tuple(
            DeviceUnowned(device.device, device.node, device.peak / ACTIVITY_SCALE)
            for device in telemetry.unowned
        ),
        ghosts=claims.ghosts(stores.pods.freeze().pods, snapshot),
        notes=(
            *_manner(policy, raw=raw, assumed=objects is None),
            *_about_text(exposition, {row.metric for read in known for row in metrics_of(read)}),
            *_about_reading(snapshot),
            *_about_claims(assumed),
            *_about_objects(read, faults, snapshot),
        ),
    )


def _still(profile: Profile, *, raw: bool) -> Profile:
    """The profile as it can be read from one scrape: nothing tells a counter that stands still from one seen once."""
    profile = msgspec.structs.replace(profile, energy=None)
    return msgspec.structs.replace(profile, match={}) if raw else profile


def _interval_ms(policy: Policy) -> int:
    """A pace that divides the parts by which the window's samples are counted."""
    return max(1, covered_part_ms(int(policy.evidence.window)) // _SAMPLES_PER_PART)


def _spans(policy: Policy, *, raw: bool) -> Spans:
    """The live ones, at this store's own pace."""
    spans = replace(spans_of(policy), interval_ms=0)
    return replace(spans, source_job="") if raw else spans


def _started(policy: Policy) -> str:
    """Since when every pod runs: for longer than any window that is looked at."""
    longest_ms = 2 * (int(policy.evidence.window) + int(policy.need.history_window))
    started_ms = max(_EARLIEST_MS, _NOW_MS - longest_ms)
    return datetime.fromtimestamp(started_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_file(path: Path) -> str:
    """A file's text, byte-order marks and broken characters forgiven: every line is judged by itself later."""
    try:
        if str(path) == _STDIN:
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ServiceError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise ServiceError(f"{path}: over {_MAX_BYTES} bytes are not read")
    return data.decode("utf-8-sig", "replace")


def _objects(text: str) -> Objects:
    try:
        return read_objects(text)
    except ObjectsError as error:
        raise ServiceError(f"the objects cannot be read: {error}") from None


def _judged(world: World) -> list[PodJudged]:
    """Every pod that holds accelerators, by namespace and name."""
    found = []
    for index in range(len(world.snapshot.workloads)):
        case = world.case(index)
        for unit in case.units:
            held = accelerators(unit.shape.demand, world.policy.resources)
            if not held or not _on_a_node(unit):
                continue
            alone = assess(world, replace(case, units=(unit,)))
            observation = alone.observations[0]
            reason = reason_of(observation)
            found.append(
                PodJudged(
                    namespace=unit.pod.namespace,
                    pod=unit.pod.name,
                    verdict=alone.verdict,
                    reason="Measured" if reason is None else reason.value,
                    detail=_words(observation, alone.use_ratio, world.serving.get(unit.index, ())),
                    held=held,
                )
            )
    return sorted(found, key=lambda pod: (pod.namespace, pod.pod))


def _on_a_node(unit: Unit) -> bool:
    return bool(unit.pod.node) or unit.pod.phase == "Running"


def _words(observation: Observation, ratio: float | None, servers: Sequence[ServingUse]) -> str:
    said = [f"{use.server}: {demand_of(use)}" for use in servers]
    if not isinstance(observation, Measured):
        return "; ".join([observation.why, *said])
    boards = len(observation.boards)
    noun = "share" if any(board.shares > 1 for board in observation.boards) else "board"
    used = f"{ratio or 0:.0%} of {boards} {noun}{'s' if boards > 1 else ''} in use by {observation.signal}"
    return "; ".join([used, *said])


def _dropped(dropped: Mapping[str, int], exposition: Exposition) -> dict[str, int]:
    more = {"bad-line": len(exposition.bad), "repeated-series": exposition.repeated}
    return dict(sorted({**dropped, **{why: count for why, count in more.items() if count}}.items()))


def _manner(policy: Policy, *, raw: bool, assumed: bool) -> list[str]:
    window = format_duration(policy.evidence.window)
    notes = [
        f"every value counts as constant over the whole evidence window ({window}), every pod as old enough",
        "counters stand still in one scrape: whether an exporter serves old values (frozen energy counters) is not judged",
    ]
    if raw:
        notes.append(
            "no series has a job or instance label, so this is an exporter's own text: pins of scrape jobs "
            "(evidence.sourceJob, a profile's match) are not applied"
        )
    if assumed:
        notes.append(
            "no objects were given: pods are taken from the series' owner labels and are assumed to hold exactly the "
            "devices that their series name; a pod without series, and a board that is shared with one, cannot be seen"
        )
    return notes


def _about_text(exposition: Exposition, known: AbstractSet[str]) -> list[str]:
    notes = [f"line {line.number} is no sample: {line.why}" for line in exposition.bad[:_NAMED]]
    if len(exposition.bad) > _NAMED:
        notes.append(f"{len(exposition.bad) - _NAMED} more lines are no samples")
    if strangers := [name for name in exposition.names if name not in known]:
        shown = ", ".join(strangers[:_NAMED])
        more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
        notes.append(f"metrics of no profile: {shown}{more}")
    if not exposition.samples:
        notes.append("the text has no sample")
    return notes


def _about_reading(snapshot: Snapshot) -> list[str]:
    telemetry = snapshot.telemetry
    notes = [f"not read: {telemetry.fault}"] if telemetry.fault else []
    notes += [f"several scrape jobs publish {told}: set evidence.sourceJob" for told in telemetry.untrusted]
    if misnamed := telemetry.unattributed.get("exporter", 0) + telemetry.unattributed.get("ghost", 0):
        notes.append(
            f"{misnamed} series name pods that hold no accelerators or are not known; if that is the exporter itself, set "
            "honorLabels: true in its scrape configuration, or read exported_pod and exported_namespace"
        )
    return notes


def _about_claims(assumed: Sequence[str]) -> list[str]:
    if not assumed:
        return []
    return [
        (
            f"{', '.join(assumed[:_NAMED])}: resource claims are not among the objects (get resourceclaims,resourceslices too); "
            "the pods are assumed to hold the devices that their series name"
        )
    ]


def _about_objects(objects: Objects, faults: Sequence[str], snapshot: Snapshot) -> list[str]:
    told = [*objects.faults, *faults]
    notes = [f"not read: {fault}" for fault in told[:_NAMED]]
    if len(told) > _NAMED:
        notes.append(f"{len(told) - _NAMED} more objects were not read")
    if objects.unread:
        kinds = ", ".join(f"{count} {kind}" for kind, count in objects.unread.items())
        notes.append(f"objects of kinds that are not read: {kinds}")
    waiting = sum(1 for pod in snapshot.pods if not pod.node and pod.phase == "Pending")
    if waiting:
        notes.append(f"{waiting} pending pods hold nothing yet and are not judged")
    return notes
