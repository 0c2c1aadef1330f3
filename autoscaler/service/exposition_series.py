"""What an exporter's text says by itself: which profile reads which metric how, whose series they are, and their values."""

import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from autoscaler.model.exposition import Ghost, MetricRead, ProfileRead, SignalRead
from autoscaler.model.policy import Resources
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.exposition import Exposition, Sample
from autoscaler.observe.object_files import Document, Objects, name_of
from autoscaler.observe.profiles import OwnerLabels, Profile
from autoscaler.observe.queries import selector
from autoscaler.observe.series import Identity, Positions, ProfileSeries, SeriesReading
from autoscaler.observe.serving import ServingProfile, by_owner
from autoscaler.observe.still_store import StillStore

_CONTAINER: Final = "main"
_SLICE: Final = "assumed"


class Seen(msgspec.Struct, frozen=True, order=True):
    """A device as the series of a pod name it."""

    device: str
    sliced: bool
    container: str


class Claim(msgspec.Struct, frozen=True):
    """A pod as the series of one profile name it."""

    namespace: str
    pod: str
    uid: str
    profile: str
    node: str
    devices: tuple[Seen, ...]


class Claims(msgspec.Struct, frozen=True):
    """All pods that series name, with scrape targets left out; a pod has one claim for each profile and uid."""

    claims: tuple[Claim, ...] = ()

    @classmethod
    def of(cls, reading: SeriesReading) -> "Claims":
        """The claims of a reading."""
        found = [claim for series in reading.profiles for claim in _claims(series)]
        found += [Claim(row.namespace, row.pod, "", row.server, "", ()) for row in reading.serving]
        return cls(tuple(found))

    def uid_of(self, namespace: str, pod: str) -> str:
        """The uid that the series state for a pod, if they state one; else one made of its name."""
        uids = {c.uid for c in self.claims if c.uid and c.pod == pod and c.namespace in {"", namespace}}
        return uids.pop() if len(uids) == 1 else f"{namespace}/{pod}"

    def assumed_objects(self, resources: Resources) -> Objects:
        """Pods that hold exactly the devices that their series name, as objects."""
        claims: defaultdict[tuple[str, str], list[Claim]] = defaultdict(list)
        for claim in self.claims:
            claims[(claim.namespace or "default", claim.pod)].append(claim)
        pods = tuple(_pod_document(key, claims[key], resources) for key in sorted(claims))
        return Objects({"Pod": pods})

    def with_assumed_devices(self, objects: Objects, resources: Resources) -> tuple[Objects, tuple[str, ...]]:
        """The objects with what pods hold by resource claims that are not among them, and those pods' names.

        It is taken from the devices that series name; a pod that no series names stays as it is.
        """
        if objects.by_kind.get("ResourceClaim"):
            return objects, ()
        assumed = {name_of(pod): pod for pod in self.assumed_objects(resources).by_kind["Pod"]}
        pods, changed = [], []
        for pod in objects.by_kind.get("Pod", ()):
            spec, found = pod.get("spec"), assumed.get(name_of(pod))
            if isinstance(spec, dict) and spec.get("resourceClaims") and found is not None:
                rest = {name: value for name, value in spec.items() if name != "resourceClaims"}
                pods.append({**pod, "spec": {**rest, "containers": found["spec"]["containers"]}})
                changed.append(name_of(pod))
            else:
                pods.append(pod)
        return msgspec.structs.replace(objects, by_kind={**objects.by_kind, "Pod": tuple(pods)}), tuple(
            changed
        )

    def ghosts(self, known: Iterable[str], snapshot: Snapshot) -> tuple[Ghost, ...]:
        """Claims of pods that are not among the known (namespace/name), or have another uid."""
        names = set(known)
        bare = {name.partition("/")[2] for name in names}
        uids = {f"{pod.namespace}/{pod.name}": pod.uid for pod in snapshot.pods}
        found = []
        for claim in self.claims:
            name = f"{claim.namespace}/{claim.pod}"
            there = name in names if claim.namespace else claim.pod in bare
            if there and claim.uid and uids.get(name, claim.uid) != claim.uid:
                there = False
            if not there:
                devices = tuple(dict.fromkeys(seen.device for seen in claim.devices))
                found.append(Ghost(claim.namespace, claim.pod, claim.profile, devices))
        return tuple(found)


def _claims(series: ProfileSeries) -> Iterator[Claim]:
    devices: dict[tuple[str, str, str], set[Seen]] = {}
    nodes: dict[tuple[str, str, str], str] = {}
    for identity, labels in zip(series.identities, series.nodes, strict=True):
        key = (identity.namespace, identity.pod, identity.uid)
        if not identity.pod or "/".join(key[:2]) in series.targets:
            continue
        nodes[key] = nodes.get(key) or _node_name(labels)
        own = devices.setdefault(key, set())
        if identity.device:
            own.add(Seen(identity.device, identity.sliced, identity.container))
    for key in sorted(devices):
        yield Claim(*key, series.profile.name, nodes[key], tuple(sorted(devices[key])))


def profiles_read(
    profiles: Iterable[Profile | ServingProfile], exposition: Exposition, reading: SeriesReading
) -> tuple[ProfileRead, ...]:
    """The profiles that recognise any series of the text, with what they read there."""
    live = {series.profile.name for series in reading.profiles} | {row.server for row in reading.serving}
    targets = frozenset[str]().union(*(series.targets for series in reading.profiles))
    by_name: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in exposition.samples:
        by_name[sample.name].append(sample)
    found = []
    for profile in profiles:
        samples = [sample for metric in profile.metrics for sample in by_name.get(metric, ())]
        labels = {label for sample in samples for label in sample.labels}
        read = ProfileRead(
            profile=profile.name,
            metrics=tuple(row for row in metrics_of(profile) if row.metric in by_name),
            series=len(samples),
            owner_labels=_owner_labels(profile, samples, targets),
            device_label=_device_label(profile, labels),
            live=profile.name in live,
        )
        found += [read] if samples else []
    return tuple(found)


def metrics_of(profile: Profile | ServingProfile) -> Iterator[MetricRead]:
    """Every metric of a profile with its scale and unit, the signals first."""
    if isinstance(profile, ServingProfile):
        yield from (MetricRead(name, "amount", "requests") for name in (*profile.queue, *profile.running))
        yield from (_activity(name, 1) for name in profile.cache)
        yield from (MetricRead(name, "counter", "requests or tokens") for name in profile.counters)
        return
    for signal in profile.signals:
        yield _activity(signal.metric, signal.full)
    if profile.board:
        yield _activity(profile.board.metric, profile.board.full)
    memory = profile.memory
    for name in (memory.used, memory.free, memory.reserved, memory.total) if memory else ():
        if name and memory:
            yield MetricRead(name, "amount", memory.unit)
    if profile.power:
        yield MetricRead(profile.power.metric, "amount", "W" if profile.power.per_watt == 1 else "mW")
    for traffic in profile.traffic:
        yield MetricRead(traffic.metric, f"quiet up to {traffic.quiet_max:g}", "as exported")
    if profile.energy:
        yield MetricRead(profile.energy, "counter", "as exported")
    if profile.last_active:
        yield MetricRead(profile.last_active, "amount", "s")


async def signals_of(
    store: StillStore,
    profiles: Sequence[Profile],
    serving: Sequence[ServingProfile],
    snapshot: Snapshot,
    reading: SeriesReading,
) -> Mapping[tuple[str, str], tuple[SignalRead, ...]]:
    """The values of each pod (namespace, name): of its own series, and of those without owner of a device it holds."""
    holders = _holders(snapshot)
    names: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for pod in snapshot.pods:
        names[pod.name].append((pod.namespace, pod.name))
    live = {series.profile.name: series for series in reading.profiles}
    found: defaultdict[tuple[str, str], list[SignalRead]] = defaultdict(list)
    for profile in profiles:
        if profile.name not in live:
            continue
        for metric in metrics_of(profile):
            async for identity, value in _values(store, profile, metric.metric):
                for pod_key in _owners(identity, live[profile.name], names, holders):
                    row = SignalRead(metric.metric, identity.device, _json_number(value), metric.unit)
                    found[pod_key].append(row)
    for server in serving:
        for metric in metrics_of(server):
            combine = "max" if metric.metric in server.cache else server.combine
            owner = f"{server.owner.namespace}, {server.owner.pod}"
            read = await store.query(f"{combine} by ({owner}) ({metric.metric})")
            for key, value in sorted(by_owner(server, read).items()):
                found[key].append(SignalRead(metric.metric, "", _json_number(value), metric.unit))
    return {key: tuple(rows) for key, rows in found.items()}


async def _values(store: StillStore, profile: Profile, metric: str) -> AsyncIterator[tuple[Identity, float]]:
    positions = Positions(profile)
    labels = ", ".join(profile.labels)
    answer = await store.query(f"max by ({labels}) ({selector(metric, profile.match)})")
    read = positions.collect(answer)
    for position, value in zip(read.positions.tolist(), read.values.tolist(), strict=True):
        yield positions.identities[position], value


def _owners(
    identity: Identity,
    series: ProfileSeries,
    names: Mapping[str, list[tuple[str, str]]],
    holders: Mapping[str, set[tuple[str, str]]],
) -> Iterable[tuple[str, str]]:
    key = (identity.namespace, identity.pod)
    if identity.pod and "/".join(key) not in series.targets:
        return (key,) if identity.namespace else names.get(identity.pod, ())
    return sorted(holders.get(identity.device, ()))


def _holders(snapshot: Snapshot) -> Mapping[str, set[tuple[str, str]]]:
    """The pods of every device in the holder table."""
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for device, index in zip(snapshot.holders.device, snapshot.holders.pod.tolist(), strict=True):
        found[device].add((snapshot.pods[index].namespace, snapshot.pods[index].name))
    return found


def _owner_labels(
    profile: Profile | ServingProfile, samples: Iterable[Sample], targets: AbstractSet[str]
) -> tuple[str, ...]:
    """The labels that name the owner of any of the samples, in the profile's order; a scrape target is no owner."""
    groups = (profile.owner,) if isinstance(profile, ServingProfile) else profile.owners
    used: dict[OwnerLabels, set[str]] = {}
    for sample in samples:
        labels = sample.labels
        named = [group for group in groups if group.pod in labels]
        # As the reader has it: among groups that share their pod label the first with a namespace.
        same = [group for group in named if group.pod == named[0].pod and group.namespace in labels]
        for group in (same or named)[:1]:
            if f"{labels.get(group.namespace, '')}/{labels[group.pod]}" not in targets:
                used.setdefault(group, set()).update(name for name in _group_labels(group) if name in labels)
    return tuple(dict.fromkeys(n for g in groups for n in _group_labels(g) if n in used.get(g, ())))


def _group_labels(group: OwnerLabels) -> tuple[str, ...]:
    return tuple(filter(None, (group.pod, group.namespace, group.container, group.uid)))


def _device_label(profile: Profile | ServingProfile, labels: set[str]) -> str:
    keys = () if isinstance(profile, ServingProfile) else profile.device_keys
    return next(("+".join(key) for key in keys if labels.issuperset(key)), "")


def _activity(metric: str, full: int) -> MetricRead:
    return MetricRead(metric, f"0-{full}", "ratio" if full == 1 else "%")


def _node_name(labels: frozenset[str]) -> str:
    """A name among the values of node labels; an address with a port is one only where there is nothing better."""
    return min(labels, key=lambda label: (":" in label, label), default="")


def _resource(resources: Resources, *, sliced: bool) -> str:
    """The resource that an assumed pod holds a device by: the policy's first of the device's kind, else of any kind."""
    slices = [f"{prefix}{_SLICE}" for prefix in resources.slices]
    names = [*slices, *resources.boards] if sliced else [*resources.boards, *slices]
    return names[0] if names else _SLICE


def _pod_document(key: tuple[str, str], claims: Sequence[Claim], resources: Resources) -> Document:
    """A pod that holds the devices of its claims; several exporters may name the same ones, each in its own way."""
    held: dict[str, Counter[str]] = {}
    for claim in claims:
        own: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for seen in claim.devices:
            own[seen.container or _CONTAINER][_resource(resources, sliced=seen.sliced)] += 1
        for name, amounts in own.items():
            held[name] = held.get(name, Counter()) | amounts
    held = held or {_CONTAINER: Counter({_resource(resources, sliced=False): 1})}
    return {
        "kind": "Pod",
        "metadata": {"namespace": key[0], "name": key[1]},
        "spec": {
            "nodeName": next((claim.node for claim in claims if claim.node), ""),
            "containers": [
                {"name": name, "resources": {"limits": dict(held[name])}} for name in sorted(held)
            ],
        },
    }


def _json_number(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")
