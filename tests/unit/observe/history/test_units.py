from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from unit.observe.observed import PROFILES, deployment, owner, pod, replica_set, stores

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.assemble import assemble
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.steps import Grid, SourceSteps
from autoscaler.observe.history.units import Gathering, UnitName
from autoscaler.observe.history.workloads import WorkloadSteps
from autoscaler.observe.series import Identity, SeriesReading

STEP = 300_000
SAMPLES = 20
INTERVAL = STEP // SAMPLES
NOW = 1_800_000_000_000
DCGM = PROFILES["dcgm"]
ENGINE, UTIL = DCGM.signals[0], next(s for s in DCGM.signals if s.kind == "util")
WEB = WorkloadRef("apps", "Deployment", "ml", "web")


def owners() -> PastOwners:
    """Deployment web with two live pods, and a bare pod."""
    view = stores(
        deployment("web"),
        replica_set("web-7d9f8c6b5d", of="web", uid="rs"),
        *(
            pod(f"web-7d9f8c6b5d-{suffix}", owner=owner("ReplicaSet", "web-7d9f8c6b5d", uid="rs"))
            for suffix in ("x2x4q", "m8k2p")
        ),
        pod("solo"),
    ).freeze()
    return PastOwners.of(view, assemble(view, SeriesReading(), now_ms=NOW))


def identity(pod_name: str, device: str = "gpu-1", **more: Any) -> Identity:
    fields = {"sliced": False, "share": False, "namespace": "ml", "container": "main", "uid": "", **more}
    return Identity(device=device, board=device, pod=pod_name, **fields)


FIRST, SECOND = "web-7d9f8c6b5d-x2x4q", "web-7d9f8c6b5d-m8k2p"


def source(
    rows: Sequence[tuple[Identity, Sequence[float]]],
    *,
    signal: Any = ENGINE,
    targets: frozenset[str] = frozenset(),
    **tables: Any,
) -> SourceSteps:
    """Series with their mean in each step (-1: no sample); the other tables follow it unless they are stated."""
    mean = np.array([values for _, values in rows], dtype=np.float64).reshape(
        len(rows), len(rows[0][1]) if rows else 1
    )
    seen = mean >= 0
    found = SourceSteps(
        profile=DCGM,
        signal=signal,
        interval_ms=INTERVAL,
        identities=tuple(name for name, _ in rows),
        targets=targets,
        mean=mean,
        peak=np.array(tables.pop("peak", mean), dtype=np.float64),
        count=np.array(tables.pop("count", np.where(seen, SAMPLES, -1)), dtype=np.float64),
        busiest=np.array(tables.pop("busiest", mean), dtype=np.float64),
        used_mib=np.array(tables.pop("used", np.full(mean.shape, -1.0)), dtype=np.float64),
    )
    assert not tables
    return found


def gathered(*sources: SourceSteps, held: dict[UnitName, int] | None = None) -> WorkloadSteps:
    found = Gathering(
        Grid(NOW // STEP * STEP, STEP, sources[0].mean.shape[1]),
        owners(),
        active_floor=0.05,
        held={} if held is None else held,
    )
    for one in sources:
        found.add(one)
    return found.steps()


def test_the_boards_of_a_unit_add_up() -> None:
    found = gathered(
        source(
            [(identity(FIRST, "gpu-1"), [0.5, 0.9]), (identity(FIRST, "gpu-2"), [0.25, 0.0])],
            peak=[[1.0, 1.0], [0.5, 0.0]],
            used=[[100.0, 100.5], [300.0, -1.0]],
        )
    )

    assert found.keys == ((WEB, "main"),)
    assert found.load_milli.tolist() == [[750, 900]]
    assert found.peak_milli.tolist() == [[1_500, 1_000]]
    assert found.active_boards.tolist() == [[2, 1]]
    assert found.memory_peak_mib.tolist() == [[300, 101]]
    assert found.covered_ms.tolist() == [[STEP, STEP]]


def test_of_several_units_the_one_that_used_most_counts_in_each_step() -> None:
    found = gathered(source([(identity(FIRST), [0.9, 0.1]), (identity(SECOND, "gpu-2"), [0.2, 0.3])]))

    assert found.load_milli.tolist() == [[900, 300]]


def test_boards_that_work_in_turns_are_one_board_of_load() -> None:
    found = gathered(source([(identity(FIRST, "gpu-1"), [1.0, 0.0]), (identity(FIRST, "gpu-2"), [0.0, 1.0])]))

    assert found.load_milli.tolist() == [[1_000, 1_000]]
    assert found.active_boards.tolist() == [[1, 1]]


def test_a_step_without_one_of_the_boards_is_not_covered() -> None:
    found = gathered(source([(identity(FIRST, "gpu-1"), [0.5, 0.5]), (identity(FIRST, "gpu-2"), [0.5, -1])]))

    assert found.covered_ms.tolist() == [[STEP, 0]]


def test_how_many_boards_a_unit_has_is_remembered_between_pieces() -> None:
    held: dict[UnitName, int] = {}
    gathered(source([(identity(FIRST, "gpu-1"), [0.5]), (identity(FIRST, "gpu-2"), [0.5])]), held=held)
    found = gathered(source([(identity(FIRST, "gpu-1"), [0.5])]), held=held)

    assert held == {("ml", FIRST, "main"): 2}
    assert found.covered_ms.tolist() == [[0]]


def test_the_worst_sampled_board_says_how_much_is_covered() -> None:
    found = gathered(
        source([(identity(FIRST, "gpu-1"), [0.5]), (identity(FIRST, "gpu-2"), [0.5])], count=[[SAMPLES], [5]])
    )

    assert found.covered_ms.tolist() == [[5 * INTERVAL]]


def test_twice_as_many_samples_are_no_more_than_the_step() -> None:
    assert gathered(source([(identity(FIRST), [0.5])], count=[[2 * SAMPLES]])).covered_ms.tolist() == [[STEP]]


def test_without_a_known_sample_interval_nothing_is_covered() -> None:
    import msgspec  # noqa: PLC0415 - only here

    found = gathered(msgspec.structs.replace(source([(identity(FIRST), [0.5])]), interval_ms=0))

    assert found.covered_ms.tolist() == [[0]]


def test_a_new_pod_makes_a_step_of_its_peers_only_a_little_thinner() -> None:
    found = gathered(
        source(
            [(identity(FIRST), [0.5]), (identity(SECOND, "gpu-2"), [0.5])], count=[[SAMPLES], [SAMPLES // 2]]
        )
    )

    assert found.covered_ms.tolist() == [[STEP * 3 // 4]]


def test_series_of_one_device_that_differ_in_a_label_are_one_board() -> None:
    found = gathered(source([(identity(FIRST), [0.5, 0.5]), (identity(FIRST, uid="uid-1"), [0.6, -1])]))

    assert found.load_milli.tolist() == [[600, 500]]
    assert found.covered_ms.tolist() == [[STEP, STEP]]


def test_the_preferred_signal_counts_where_it_covers_and_another_fills_the_rest() -> None:
    engine = source([(identity(FIRST), [0.3, -1, 0.3])])
    util = source([(identity(FIRST), [1.0, 0.8, -1])], signal=UTIL)

    assert gathered(engine, util).load_milli.tolist() == [[300, 800, 300]]


def test_a_signal_that_is_void_on_slices_says_nothing_of_them() -> None:
    sliced = identity(FIRST, "gpu-1/7", sliced=True)

    assert gathered(source([(sliced, [0.9])], signal=UTIL)).keys == ()
    assert gathered(source([(sliced, [0.9])], signal=ENGINE)).keys == ((WEB, "main"),)


def test_past_pods_of_a_live_workload_count_for_it() -> None:
    past = "web-6c54bd5869-bcdfg"

    assert gathered(source([(identity(past), [0.7])])).load_milli.tolist() == [[700]]


@pytest.mark.parametrize(
    ("stranger", "why"),
    [
        (identity(""), "unowned"),
        (identity("exporter-x"), "unowned"),
        (identity("somebody"), "unknown"),
        (identity("web-7d9f8c6b5d-x2x4q", namespace=""), ""),
        (identity("somebody", namespace=""), "unknown"),
    ],
)
def test_series_of_nobody_are_counted_by_why(stranger: Identity, why: str) -> None:
    found = Gathering(Grid(NOW // STEP * STEP, STEP, 1), owners(), active_floor=0.05, held={})
    found.add(source([(stranger, [0.5])], targets=frozenset({"ml/exporter-x"})))

    assert ({why: 1} if why else {}) == dict(found.left_out)
    assert (0 if why else 1) == len(found.steps().keys)


def test_series_without_any_sample_are_not_looked_at() -> None:
    found = Gathering(Grid(NOW // STEP * STEP, STEP, 1), owners(), active_floor=0.05, held={})
    found.add(source([(identity("somebody"), [-1])]))

    assert dict(found.left_out) == {}


def test_nothing_seen_is_no_workload() -> None:
    assert gathered(source([(identity("somebody"), [0.1])])).keys == ()
    assert gathered(source([]), source([])).keys == ()


def test_a_trace_of_use_is_not_none() -> None:
    assert gathered(source([(identity(FIRST), [0.0001])])).load_milli.tolist() == [[1]]
    assert gathered(source([(identity(FIRST), [0.0])])).load_milli.tolist() == [[0]]


def test_a_bare_pod_and_a_past_pod_of_its_name_are_one_workload() -> None:
    found = gathered(source([(identity("solo", uid="an-earlier-one"), [0.4])]))

    assert ((WorkloadRef("", "Pod", "ml", "solo"), "main"),) == found.keys


def test_how_many_boards_a_unit_has_is_counted_and_slices_are_none() -> None:
    both = [(identity(FIRST, "gpu-1"), [0.5, -1]), (identity(FIRST, "gpu-2"), [0.5, 0.5])]
    sliced = [(identity("solo", f"gpu-1/{n}", sliced=True), [0.5]) for n in (7, 8)]

    assert gathered(source(both)).boards.tolist() == [[2, 65_535]]  # the second step is not covered
    assert gathered(source(sliced)).boards.tolist() == [[0]]
    assert gathered(
        source([*[(name, values[:1]) for name, values in both], (identity(SECOND), [0.1])])
    ).boards.tolist() == [[1]]


def test_all_units_together_are_remembered_too() -> None:
    found = gathered(
        source(
            [(identity(FIRST), [0.9, 0.1]), (identity(SECOND, "gpu-2"), [0.2, 0.3])],
            peak=[[1.0, 0.1], [0.5, 0.4]],
        )
    )

    assert found.total_milli.tolist() == [[1_100, 400]]
    assert found.total_peak_milli.tolist() == [[1_500, 500]]


def test_a_unit_that_came_within_a_step_counts_by_its_part_so_that_a_rollout_is_not_twice_the_load() -> None:
    found = gathered(
        source(
            [(identity(FIRST), [0.8]), (identity(SECOND, "gpu-2"), [0.8])],
            count=[[SAMPLES // 2], [SAMPLES // 2]],
        )
    )

    assert found.total_milli.tolist() == [[800]]
    assert found.total_peak_milli.tolist() == [[800]]


def test_a_lost_scrape_does_not_lessen_the_load_of_all_units() -> None:
    assert gathered(source([(identity(FIRST), [0.8])], count=[[SAMPLES - 1]])).total_milli.tolist() == [[800]]
