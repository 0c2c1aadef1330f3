"""Whose series are whose: labels that are lost, swapped or late, devices that change hands, and copies of everything."""

from dataclasses import replace
from random import Random

from corrupted.case import Case, changed, forgotten, noted, scope, split
from corrupted.exporter import ENGINE, POWER, PROFILING, UTIL, Samples, Track, owner_labels, owner_names
from corrupted.worlds import END_MS, MINUTE_MS, SPAN_MS


def two_exporters(case: Case, draw: Random) -> Case:
    """Every board is published twice, by exporters that call the node by different names and disagree on owners or use."""
    copy = draw.choice(("same", "unowned", "no profiling", "stopped"))
    shift_ms = draw.randrange(0, case.world.interval_ms, 1000)
    names = owner_names(case.world)

    def second(track: Track) -> Track:
        label = "Hostname" if "Hostname" in track.labels else "hostname"
        told = draw.choice((track.node.partition(".")[0], track.node, "nvidia-dcgm-exporter-x7k2p"))
        labels = track.labels | {"instance": f"{track.node}:9401", label: told}
        samples: Samples = tuple((at - shift_ms, value) for at, value in track.samples)
        if copy == "unowned":
            labels = {name: value for name, value in labels.items() if name not in names}
        if copy == "no profiling" and track.metric in PROFILING:
            samples = tuple((at, 0.0) for at, _ in samples)
        if copy == "stopped":
            samples = samples[: len(samples) // 2]
        return replace(track, labels=labels, samples=samples)

    tracks = (*case.tracks, *(second(track) for track in case.tracks if track.device))
    return noted(replace(case, tracks=tracks), f"second exporter: {copy}")


def two_stores(case: Case, draw: Random) -> Case:
    """Two Prometheis write the same series under their replica labels, each with gaps of its own."""
    share = draw.choice((0.0, 0.1, 0.4))

    def copy(track: Track, name: str) -> Track:
        kept = tuple(s for s in track.samples if draw.random() >= share)
        return replace(track.but(prometheus_replica=name), samples=kept)

    tracks = tuple(copy(track, name) for track in case.tracks for name in ("a", "b"))
    return noted(replace(case, tracks=tracks), f"two stores, each without {share:.0%}")


def lose_labels(case: Case, draw: Random) -> Case:
    """Owner labels are left out or empty: of a device, a node or everywhere, always or since some minutes ago."""
    wanted, pods = scope(case, draw)
    names = draw.choice((owner_names(case.world), owner_names(case.world)[:1], owner_names(case.world)[1:2]))
    emptied, since_ms = draw.random() < 0.5, END_MS - draw.choice((SPAN_MS, 15 * MINUTE_MS, 4 * MINUTE_MS))

    def rest(track: Track) -> Track:
        if emptied:
            return track.but(**{name: "" for name in names if name in track.labels})
        return replace(track, labels={k: v for k, v in track.labels.items() if k not in names})

    found = split(case, wanted, rest, since_ms)
    found = noted(found, f"{', '.join(names)} of {len(pods)} pods for {(END_MS - since_ms) // MINUTE_MS} min")
    return forgotten(found, pods) if names[0] in owner_names(case.world)[:1] else found


def swap_labels(case: Case, draw: Random) -> Case | None:
    """Two pods are taken for each other: since some minutes ago, over nodes, or in some of their labels only."""
    ways = ["midway", "midway", "container stays"]
    left = draw.choice(case.world.units)
    others = [unit for unit in case.world.units if case.world.work_of(unit) != case.world.work_of(left)]
    if not others:
        return None
    right = draw.choice(others)
    ways += ["whole"] if left.node != right.node or len(left.devices) != len(right.devices) else []
    ways += ["uid stays"] if case.world.style == "uid" else []
    way = draw.choice(ways)
    since_ms = END_MS - draw.choice((25, 15, 5)) * MINUTE_MS if way == "midway" else 0
    stays = {"container stays": ("container", "exported_container"), "uid stays": ("pod_uid",)}.get(way, ())
    if way == "uid stays":
        assert left.uid != right.uid
    owners = {left.name: owner_labels(case.world, right), right.name: owner_labels(case.world, left)}

    def edit(track: Track) -> Track:
        if not all(name in track.labels for name in owner_names(case.world)):
            return track
        return track.but(**{k: v for k, v in owners[track.pod].items() if k not in stays})

    swapped = split(case, lambda track: track.pod in owners, edit, since_ms)
    return noted(forgotten(swapped, owners), f"swapped {left.name} and {right.name}: {way}, since {since_ms}")


def move_slices(case: Case, draw: Random) -> Case | None:
    """Two slices change hands in the window, as when pods are re-created while the exporter's mapping lags."""
    held = [unit for unit in case.world.units if unit.devices[0].slice_id]
    if len(held) < 2:
        return None
    left, right = draw.sample(held, 2)
    since_ms = END_MS - draw.choice((20, 10, 5)) * MINUTE_MS
    owners = {left.name: owner_labels(case.world, right), right.name: owner_labels(case.world, left)}

    def edit(track: Track) -> Track:
        if not all(name in track.labels for name in owner_names(case.world)):
            return track
        return track.but(**owners[track.pod])

    moved = split(case, lambda track: track.pod in owners, edit, since_ms)
    return forgotten(moved, (left.name, right.name))


def rename_pods(case: Case, draw: Random) -> Case:
    """A pod was re-created and works, while the series of the one before it go on under its name."""
    unit = draw.choice(case.world.units)
    work = case.world.work_of(unit)
    ago_ms = draw.choice((12 * MINUTE_MS, 2 * 60 * MINUTE_MS))
    name = unit.name if work.kind == "StatefulSet" else f"{unit.name[:-1]}z"
    if unit.name == name:
        ago_ms = 12 * MINUTE_MS
    fresh = replace(
        unit,
        name=name,
        uid=f"{unit.uid}-2",
        known=False,
        started_ms=END_MS - ago_ms,
        woke_ms=END_MS - ago_ms,
    )
    return noted(changed(case, {unit.name: fresh}), f"{unit.name} is {name} for {ago_ms // MINUTE_MS} min")


def unowned_busy(case: Case, draw: Random) -> Case:
    """A board on some node works and names nobody: a container sees it without having asked."""
    models = [track for track in case.tracks if track.metric in {ENGINE, UTIL, POWER} and track.pod]
    model = draw.choice(models)
    names = owner_names(case.world)
    labels = {k: v for k, v in model.labels.items() if k not in {*names, "GPU_I_ID", "GPU_I_PROFILE"}}
    extra = []
    for metric, value in ((ENGINE, 0.9), (UTIL, 90.0), (POWER, 380.0)):
        samples = tuple((at, value) for at, _ in model.samples)
        stray = f"GPU-{case.world.job}-stray"
        extra.append(Track(metric, labels | {"UUID": stray, "gpu": "15"}, samples, stray, model.node))
    return replace(case, tracks=(*case.tracks, *extra))
