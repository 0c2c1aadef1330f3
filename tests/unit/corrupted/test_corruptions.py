"""The generator of corrupted worlds: drawn from the seed alone, and nothing in it changes who is busy."""

from collections import Counter
from functools import cache

import pytest
from corrupted.campaign import series_of, twins
from corrupted.case import Case
from corrupted.corruptions import APART, CORRUPTIONS
from corrupted.exporter import ENERGY, ENGINE
from corrupted.worlds import END_MS, SPAN_MS

pytestmark = pytest.mark.unit

SEEDS = range(100)


@cache
def drawn() -> tuple[tuple[Case, Case], ...]:
    return tuple(twins(seed) for seed in SEEDS)


def test_a_seed_always_draws_the_same_worlds() -> None:
    first, second = twins(7), twins(7)

    assert [series_of(case) for case in first] == [series_of(case) for case in second]
    assert first[1].names == second[1].names


def test_clean_twins_are_whole_and_corrupted_ones_are_not() -> None:
    for clean, corrupted in drawn():
        assert clean.names == ()
        assert 1 <= len(corrupted.names) <= 3
        assert all(unit.known and not unit.woke_ms for unit in clean.world.units)


def test_every_corruption_is_drawn_and_none_beside_one_that_hides_it() -> None:
    names = Counter(name for _, corrupted in drawn() for name in corrupted.names)

    assert set(names) == set(CORRUPTIONS)
    for _, corrupted in drawn():
        assert not any(pair <= set(corrupted.names) for pair in APART)


def test_corruption_changes_what_a_unit_does_only_by_waking_it() -> None:
    for clean, corrupted in drawn():
        before = [(unit.use, unit.devices[0].index) for unit in clean.world.units]
        assert before == [(unit.use, unit.devices[0].index) for unit in corrupted.world.units]
        assert all(not unit.known for unit in corrupted.world.units if unit.woke_ms)


def test_samples_lie_inside_the_span_in_the_order_of_time() -> None:
    for pair in drawn()[:20]:
        for case in pair:
            for series in series_of(case):
                times = [at for at, _ in series.samples]
                assert times == sorted(set(times))
                assert END_MS - SPAN_MS - case.world.interval_ms <= times[0] <= times[-1] <= END_MS


def test_a_busy_board_uses_more_energy_than_an_idle_one() -> None:
    clean, _ = twins(3)
    held = {
        device.uuid: unit.use for unit in clean.world.units for device in unit.devices if not device.slice_id
    }
    used = {t.device: t.samples[-1][1] - t.samples[0][1] for t in clean.tracks if t.metric == ENERGY}
    busy = [used[uuid] for uuid, use in held.items() if use == "busy" and uuid in used]
    idle = [used[uuid] for uuid, use in held.items() if use == "idle" and uuid in used]

    assert busy, "the seed draws both"
    assert idle
    assert min(busy) > 2 * max(idle) > 0
    assert any(track.metric == ENGINE for track in clean.tracks)
