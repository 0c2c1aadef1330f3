import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from unit.observe.observed import PROFILES, deployment, owner, pod, replica_set, stores

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.answers import AnswerError
from autoscaler.observe.assemble import assemble
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.history.steps import COUNT, Grid, Measure, SourceSteps, Table, memory_of
from autoscaler.observe.history.units import Gathering
from autoscaler.observe.history.workloads import WorkloadSteps
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.profiles import Signal
from autoscaler.observe.series import SeriesReading

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
        pod("web-7d9f8c6b5d-bcdfg", gpus=0),
    ).freeze()
    return PastOwners.of(view, assemble(view, SeriesReading(), now_ms=NOW))


Labels = dict[str, str]


def identity(pod_name: str, device: str = "gpu-1", *, sliced: str = "", **more: str) -> Labels:
    """The labels of one device of a pod."""
    labels = {
        "UUID": device,
        "pod": pod_name,
        "namespace": "ml",
        "container": "main",
        "GPU_I_ID": sliced,
        **more,
    }
    return {name: value for name, value in sorted(labels.items()) if value}


FIRST, SECOND = "web-7d9f8c6b5d-x2x4q", "web-7d9f8c6b5d-m8k2p"


@dataclass(frozen=True)
class Source:
    """What a store says of some series: a mean for each step (-1: no sample), and the rest beside it."""

    labels: tuple[Labels, ...]
    signal: Signal
    tables: dict[str, np.ndarray]
    interval_ms: int

    @property
    def steps(self) -> int:
        return self.tables["mean"].shape[1]


def source(
    rows: Sequence[tuple[Labels, Sequence[float]]],
    *,
    signal: Signal = ENGINE,
    interval_ms: int = INTERVAL,
    **tables: Any,
) -> Source:
    """Series with their mean in each step; the other tables follow it unless they are stated."""
    mean = np.array([values for _, values in rows], dtype=np.float64)
    mean = mean.reshape(len(rows), len(rows[0][1]) if rows else 1)
    stated = {
        "peak": mean,
        "count": np.where(mean >= 0, SAMPLES, -1),
        "busiest": mean,
        "used": np.full(mean.shape, -1.0),
        **tables,
    }
    found = {name: np.array(values, dtype=np.float64) for name, values in stated.items()}
    return Source(tuple(labels for labels, _ in rows), signal, {"mean": mean, **found}, interval_ms)


def read(grid: Grid, registry: Registry, told: Source) -> SourceSteps:
    """The source's answers, read into tables."""
    assert DCGM.memory is not None
    tables = {}
    for name, values in told.tables.items():
        rows = [
            {
                "metric": labels,
                "values": [
                    [end / 1000, repr(v)] for end, v in zip(grid.ends_ms.tolist(), row, strict=True) if v >= 0
                ],
            }
            for labels, row in zip(told.labels, values.tolist(), strict=True)
        ]
        signal = None if name == "used" else told.signal
        measure = {"used": memory_of(DCGM.memory), "count": COUNT}.get(name, Measure(1.0, 10_000.0))
        answer = MatrixAnswer(
            json.dumps(rows, separators=(",", ":")).encode(), grid.first_ms, grid.last_ms, grid.step_ms
        )
        tables[name] = Table(grid)
        tables[name].read(answer, partial(registry.rows, DCGM, signal), measure)
    return SourceSteps(told.interval_ms, **tables)


def gathered(
    *sources: Source, held: dict[int, int] | None = None, registry: Registry | None = None
) -> WorkloadSteps:
    grid = Grid(NOW // STEP * STEP, STEP, sources[0].steps)
    known = registry or Registry(owners())
    found = Gathering(grid, known, active_floor=0.05, held={} if held is None else held)
    for one in sources:
        found.add(read(grid, known, one))
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
    held: dict[int, int] = {}
    gathered(source([(identity(FIRST, "gpu-1"), [0.5]), (identity(FIRST, "gpu-2"), [0.5])]), held=held)
    found = gathered(source([(identity(FIRST, "gpu-1"), [0.5])]), held=held)

    assert list(held.values()) == [2]
    assert found.covered_ms.tolist() == [[0]]


def test_the_worst_sampled_board_says_how_much_is_covered() -> None:
    found = gathered(
        source([(identity(FIRST, "gpu-1"), [0.5]), (identity(FIRST, "gpu-2"), [0.5])], count=[[SAMPLES], [5]])
    )

    assert found.covered_ms.tolist() == [[5 * INTERVAL]]


def test_twice_as_many_samples_are_no_more_than_the_step() -> None:
    assert gathered(source([(identity(FIRST), [0.5])], count=[[2 * SAMPLES]])).covered_ms.tolist() == [[STEP]]


def test_without_a_known_sample_interval_nothing_is_covered() -> None:
    found = gathered(source([(identity(FIRST), [0.5])], interval_ms=0))

    assert found.covered_ms.tolist() == [[0]]


def test_a_new_pod_makes_a_step_of_its_peers_only_a_little_thinner() -> None:
    found = gathered(
        source(
            [(identity(FIRST), [0.5]), (identity(SECOND, "gpu-2"), [0.5])], count=[[SAMPLES], [SAMPLES // 2]]
        )
    )

    assert found.covered_ms.tolist() == [[STEP * 3 // 4]]


def test_series_of_one_device_that_differ_in_a_label_are_one_board() -> None:
    found = gathered(source([(identity(FIRST), [0.5, 0.5]), (identity(FIRST, pod_uid="uid-1"), [0.6, -1])]))

    assert found.load_milli.tolist() == [[600, 500]]
    assert found.covered_ms.tolist() == [[STEP, STEP]]


def test_the_preferred_signal_counts_where_it_covers_and_another_fills_the_rest() -> None:
    engine = source([(identity(FIRST), [0.3, -1, 0.3])])
    util = source([(identity(FIRST), [1.0, 0.8, -1])], signal=UTIL)

    assert gathered(engine, util).load_milli.tolist() == [[300, 800, 300]]


def test_a_signal_that_is_void_on_slices_says_nothing_of_them() -> None:
    sliced = identity(FIRST, sliced="7")

    assert gathered(source([(sliced, [0.9])], signal=UTIL)).keys == ()
    assert gathered(source([(sliced, [0.9])], signal=ENGINE)).keys == ((WEB, "main"),)


def test_past_pods_of_a_live_workload_count_for_it() -> None:
    past = "web-6c54bd5869-bcdfg"

    assert gathered(source([(identity(past), [0.7])])).load_milli.tolist() == [[700]]


@pytest.mark.parametrize(
    ("stranger", "why"),
    [
        (identity(""), "unowned"),
        (identity("somebody"), "unknown"),
        (identity("web-7d9f8c6b5d-bcdfg"), "unknown"),  # it lives, and holds no accelerator
        (identity(FIRST, namespace=""), ""),
        (identity("somebody", namespace=""), "unknown"),
    ],
)
def test_series_of_nobody_are_counted_by_why(stranger: Labels, why: str) -> None:
    registry = Registry(owners())
    found = gathered(source([(stranger, [0.5]), (stranger, [0.5])]), registry=registry)

    assert dict(registry.left_out) == ({why: 1} if why else {})
    assert len(found.keys) == (0 if why else 1)


def test_an_exporter_is_no_owner_of_the_boards_that_it_shows() -> None:
    seen_beside = identity("solo", exported_pod=FIRST, exported_namespace="ml", exported_container="main")
    alone = identity("solo", "gpu-2")
    registry = Registry(owners())

    assert gathered(source([(seen_beside, [0.5]), (alone, [0.9])]), registry=registry).keys == (
        (WEB, "main"),
    )
    assert dict(registry.left_out) == {"unowned": 1}


def test_labels_keep_their_numbers_from_piece_to_piece() -> None:
    registry = Registry(owners())
    both = source([(identity(FIRST, "gpu-1"), [0.5]), (identity(FIRST, "gpu-2"), [0.25])])
    first, again = gathered(both, registry=registry), gathered(both, registry=registry)

    assert first.load_milli.tolist() == again.load_milli.tolist() == [[750]]
    assert (len(registry.unit_of), len(registry.key_of), registry.keys) == (2, 1, ((WEB, "main"),))


def test_unreadable_labels_are_refused() -> None:
    with pytest.raises(AnswerError):
        Registry(owners()).rows(DCGM, ENGINE, [b'{"UUID":7}'])


def test_a_further_signal_is_wanted_only_where_the_first_left_something_out() -> None:
    grid, registry = Grid(NOW // STEP * STEP, STEP, 2), Registry(owners())
    found = Gathering(grid, registry, active_floor=0.05, held={})
    engine = read(grid, registry, source([(identity(FIRST), [0.3, 0.3])]))
    more = read(
        grid, registry, source([(identity(FIRST), [0.3, -1]), (identity(SECOND, "gpu-2"), [-1, 0.1])])
    )

    assert found.lacks(engine.count)
    found.add(engine)
    assert not found.lacks(engine.count)
    assert found.lacks(more.count)


def test_nothing_seen_is_no_workload() -> None:
    assert gathered(source([(identity("somebody"), [0.1])])).keys == ()
    assert gathered(source([]), source([])).keys == ()


def test_a_trace_of_use_is_not_none() -> None:
    assert gathered(source([(identity(FIRST), [0.0001])])).load_milli.tolist() == [[1]]
    assert gathered(source([(identity(FIRST), [0.0])])).load_milli.tolist() == [[0]]


def test_a_bare_pod_and_a_past_pod_of_its_name_are_one_workload() -> None:
    found = gathered(source([(identity("solo", pod_uid="an-earlier-one"), [0.4])]))

    assert ((WorkloadRef("", "Pod", "ml", "solo"), "main"),) == found.keys


def test_how_many_boards_a_unit_has_is_counted_and_slices_are_none() -> None:
    both = [(identity(FIRST, "gpu-1"), [0.5, -1]), (identity(FIRST, "gpu-2"), [0.5, 0.5])]
    sliced = [(identity("solo", sliced=n), [0.5]) for n in "78"]

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
