"""Samples that are missing, wrong or old: what happens to series between a board and the store."""

from dataclasses import replace
from random import Random

from corrupted.case import Case, changed, edited, forgotten, has_copies, noted, scope
from corrupted.exporter import DRAM, ENERGY, ENGINE, POWER, PROFILING, REQUESTS, RUNNING, USED, UTIL, Track
from corrupted.worlds import END_MS, MINUTE_MS, SPAN_MS, WINDOW_MS

ACTIVITY = (ENGINE, UTIL)
BLANK = 9_223_372_036_854_775_794.0
"""DCGM's mark of a 64-bit field without a value."""
BLANK_FLOAT = 140_737_488_355_328.0
"""The same of a floating point field."""
LITTLE_WATTS = 150.0
"""What an idle board may draw with its clocks up."""
BAD_VALUES = (float("nan"), float("inf"), float("-inf"), -1.0, BLANK, BLANK_FLOAT)


def drop_samples(case: Case, draw: Random) -> Case:
    """Scrapes fail at random."""
    wanted, pods = scope(case, draw)
    share = draw.choice((0.02, 0.1, 0.3, 0.6))

    def edit(track: Track) -> Track:
        return replace(track, samples=tuple(s for s in track.samples if draw.random() >= share))

    found = edited(case, wanted, edit)
    return forgotten(found, pods, servers=True) if share >= 0.3 and not has_copies(case) else found


def drop_hole(case: Case, draw: Random) -> Case:
    """A stretch without samples somewhere in the window."""
    wanted, pods = scope(case, draw)
    length_ms = draw.choice((1, 4, 8, 15)) * MINUTE_MS
    begin_ms = END_MS - WINDOW_MS + draw.randrange(0, WINDOW_MS - length_ms, 1000)

    def edit(track: Track) -> Track:
        return replace(
            track, samples=tuple(s for s in track.samples if not begin_ms <= s[0] < begin_ms + length_ms)
        )

    found = edited(case, wanted, edit)
    return forgotten(found, pods, servers=True) if length_ms > 2 * MINUTE_MS else found


def drop_end(case: Case, draw: Random) -> Case:
    """Series that ended: ten minutes ago, or half a window."""
    wanted, pods = scope(case, draw)
    end_ms = END_MS - draw.choice((10, 15)) * MINUTE_MS

    def edit(track: Track) -> Track:
        return replace(track, samples=tuple(s for s in track.samples if s[0] < end_ms))

    return forgotten(edited(case, wanted, edit), pods, servers=True)


def bad_values(case: Case, draw: Random) -> Case:
    """Samples that are no numbers, or no numbers of this world."""
    wanted, _ = scope(case, draw)
    metrics = draw.choice(((ENGINE,), ACTIVITY, (*ACTIVITY, DRAM), (POWER,), (ENERGY,), (USED,)))
    value, share = draw.choice(BAD_VALUES), draw.choice((0.01, 0.1, 1.0))

    def edit(track: Track) -> Track:
        spoilt = tuple((at, value if draw.random() < share else kept) for at, kept in track.samples)
        return replace(track, samples=spoilt)

    found = edited(case, lambda track: track.metric in metrics and wanted(track), edit)
    return noted(found, f"{share:.0%} of {', '.join(metrics)} are {value:g}")


def freeze(case: Case, draw: Random) -> Case:
    """The exporter of a node, or every one, goes on serving what it last knew; idle units may have woken since."""
    nodes = (
        {draw.choice(case.world.nodes).name} if draw.random() < 0.5 else {n.name for n in case.world.nodes}
    )
    since_ms = END_MS - draw.choice((SPAN_MS, 20 * MINUTE_MS, 12 * MINUTE_MS))

    woken = {
        unit.name: replace(unit, known=False, woke_ms=since_ms)
        for unit in case.world.units
        if unit.node in nodes
    }

    def edit(track: Track) -> Track:
        if not track.device:
            return _served(track, since_ms) if track.pod in woken else track
        kept = track.samples[0][1]
        samples = []
        for at, value in track.samples:
            kept = value if at <= since_ms else kept
            samples.append((at, kept))
        return replace(track, samples=tuple(samples))

    frozen = edited(case, lambda track: track.node in nodes, edit)
    return noted(
        changed(frozen, woken), f"frozen for {(END_MS - since_ms) // MINUTE_MS} min on {len(nodes)} nodes"
    )


def _served(track: Track, since_ms: int) -> Track:
    """A server's series with requests since a time: it is no part of what froze."""
    step = {REQUESTS: 12.0, RUNNING: 4.0}.get(track.metric, 0.0)
    counts = track.metric == REQUESTS
    samples, base = [], 0.0
    for at, value in track.samples:
        base = (base + step if counts else step) if at >= since_ms else 0.0
        samples.append((at, value + base))
    return replace(track, samples=tuple(samples))


def reset_counters(case: Case, draw: Random) -> Case | None:
    """Energy counters begin anew, once or a few times."""
    if "freeze" in case.names or not any(track.metric == ENERGY for track in case.tracks):
        return None
    resets = sorted(END_MS - draw.randrange(0, WINDOW_MS, 1000) for _ in range(draw.choice((1, 1, 3))))

    def edit(track: Track) -> Track:
        samples, base, left = [], 0.0, list(resets)
        for at, value in track.samples:
            if left and at >= left[0]:
                left.pop(0)
                base = value
            samples.append((at, value - base))
        return replace(track, samples=tuple(samples))

    return edited(case, lambda track: track.metric in {ENERGY, REQUESTS}, edit)


def zero_profiling(case: Case, draw: Random) -> Case | None:
    """The profiling fields of a node, or of all, read 0 while boards draw their power.

    Boards that draw little are left: a small slice that works there is no different from one that rests.
    """
    if "engine" not in case.world.metrics:
        return None
    nodes = (
        {draw.choice(case.world.nodes).name} if draw.random() < 0.5 else {n.name for n in case.world.nodes}
    )
    powered = {
        track.labels["UUID"]
        for track in case.tracks
        if track.metric == POWER and max(watts for _, watts in track.samples) > LITTLE_WATTS
    }

    def edit(track: Track) -> Track:
        return replace(track, samples=tuple((at, 0.0) for at, _ in track.samples))

    return edited(
        case,
        lambda track: track.metric in PROFILING and track.node in nodes and track.labels["UUID"] in powered,
        edit,
    )
