import pytest
from build import DAY_MS, HOUR_MS, Spec, boards, cluster, judge, policy
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide import plan
from autoscaler.decide.marks import ALLOWED_GPUS
from autoscaler.decide.methods.replicas import load_of
from autoscaler.decide.need import estimate_need
from autoscaler.decide.remembered import NOTHING_REMEMBERED, Remembered, remembered
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.evidence import BoardUse, Measured
from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import Policy

WEB = WorkloadRef("apps", "Deployment", "team", "web")
WEEK_MS = 7 * DAY_MS
FRESH_MS = HOUR_MS
"""How long the live pods are known: a rollout an hour ago."""


def history(**changes: object) -> WorkloadHistory:
    """A week in which two boards did next to nothing."""
    fields = {
        "ref": WEB,
        "container": "main",
        "load_milli": 100,
        "busiest_milli": 150,
        "peak_milli": 500,
        "total_milli": 200,
        "total_peak_milli": 700,
        "active_boards": 1,
        "boards": 2,
        "memory_peak_mib": 1_000,
        "history_ms": WEEK_MS,
        "first_ms": 0,
    }
    return WorkloadHistory(**{**fields, **changes})  # type: ignore[arg-type]


def just_rolled_out(*past: WorkloadHistory, **spec: object) -> object:
    """Two boards of which one is used a little, known for an hour, with consent to one."""
    web = Spec(
        gpus=2,
        seen=(boards(0.1, 0.0, history_ms=FRESH_MS),),
        age_ms=FRESH_MS,
        annotations={ALLOWED_GPUS: "1,2"},
        rollout={"max_surge": "1", "max_unavailable": "0"},
        **spec,  # type: ignore[arg-type]
    )
    (row,) = plan(cluster(web, histories=past), policy(), 1_800_000_000_000).rows
    return row


def test_a_rollout_does_not_reset_a_known_workload_to_thin_history() -> None:
    assert just_rolled_out().reason == "ThinHistory"
    assert just_rolled_out(history()).reason == "RightSized"


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        (history(busiest_milli=1_500), "LadderEnd"),  # the load of another day needs both boards
        (history(memory_peak_mib=81_000), "LadderEnd"),  # so does its memory
        (history(history_ms=2 * DAY_MS), "ThinHistory"),
        (history(boards=1), "ThinHistory"),  # what one board did says nothing of two
        (history(ref=WorkloadRef("apps", "Deployment", "team", "other")), "ThinHistory"),
        (history(container="sidecar"), "ThinHistory"),
    ],
)
def test_the_past_holds_on_to_what_it_needed(past: WorkloadHistory, reason: str) -> None:
    assert just_rolled_out(past).reason != "RightSized"
    if reason == "ThinHistory":
        assert just_rolled_out(past).reason == reason


def test_histories_of_several_containers_add_up_and_the_youngest_counts() -> None:
    found = remembered(
        [
            history(container="main", boards=1, history_ms=WEEK_MS, memory_peak_mib=10),
            history(container="draft", load_milli=300, boards=1, history_ms=DAY_MS, memory_peak_mib=20),
            history(container="gone", load_milli=9_000),
        ],
        containers=["main", "draft"],
        held=2,
    )

    assert found == Remembered(
        activity_milli=450,
        total_milli=400,
        total_peak_milli=1_400,
        active_boards=2,
        memory_peak_mib=20,
        history_ms=DAY_MS,
    )


def test_a_history_without_a_container_s_name_counts_where_no_other_does() -> None:
    unnamed = history(container="", load_milli=900)

    assert remembered([unnamed], containers=["main"], held=1).activity_milli == 900
    assert remembered([unnamed, history()], containers=["main"], held=1).activity_milli == 150
    assert remembered([], containers=["main"], held=1) == NOTHING_REMEMBERED


def test_fewer_boards_than_now_are_no_confidence_but_their_load_counts() -> None:
    found = remembered([history(boards=1, busiest_milli=990)], containers=["main"], held=2)

    assert (found.history_ms, found.activity_milli) == (0, 990)


def test_replicas_are_kept_for_the_load_that_all_units_of_the_past_had_together() -> None:
    web = Spec(seen=(boards(0.05, history_ms=FRESH_MS),) * 10, age_ms=FRESH_MS)
    past = history(boards=1, total_milli=4_000, total_peak_milli=6_000)

    quiet = load_of(*judge(cluster(web)))
    known = load_of(*judge(cluster(web, histories=(past,))))
    assert quiet.sure == 1
    assert known.sure == 7  # 4.0 / 0.70 x 1.15 = 6.6
    assert known.needed == 8  # with a week of history: x (1 + 1/7)
    peaks = history(boards=1, total_milli=0, total_peak_milli=6_100)
    assert load_of(*judge(cluster(web, histories=(peaks,)))).sure == 7


def unit(*memory: tuple[int | None, int | None]) -> Measured:
    return Measured(
        tuple(BoardUse(f"d{i}", 0, 0, 0, 0, 0, peak, total) for i, (peak, total) in enumerate(memory)),
        coverage=1.0,
        age_ms=0,
        history_ms=WEEK_MS,
        signal="engine",
    )


@pytest.mark.parametrize(
    ("memory", "past_mib", "milli"),
    [
        (((10, 100), (50, 100)), 40, 667),  # 60 / 90: the past needed no more than the fullest board now
        (((10, 100), (50, 100)), 90, 1_112),  # (10 + 90) / 90
        (((None, 100), (50, 100)), 90, 2_000),  # full, and 90 / 90
        (((None, None),), 90, 1_000),  # it counts as full anyway
        (((10, 100),), 0, 112),
    ],
)
def test_one_board_must_hold_what_any_board_of_the_past_held(
    memory: tuple[tuple[int | None, int | None], ...], past_mib: int, milli: int
) -> None:
    past = Remembered(memory_peak_mib=past_mib)

    assert estimate_need(unit(*memory), Policy(), past=past).memory == milli


AMOUNTS = st.integers(0, 20_000)
PASTS = st.builds(
    Remembered,
    activity_milli=AMOUNTS,
    active_boards=st.integers(0, 8),
    memory_peak_mib=AMOUNTS,
    history_ms=st.integers(0, WEEK_MS),
)
USES = st.builds(
    lambda p95, busiest, mib: BoardUse("d", p95, p95, p95, p95, busiest, mib, 1_000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.none() | st.integers(0, 2_000),
)
UNITS = st.builds(
    lambda uses, history_ms: Measured(tuple(uses), 1.0, 0, history_ms, "engine"),
    st.lists(USES, min_size=1, max_size=4),
    st.integers(0, 2 * WEEK_MS),
)


@given(UNITS, PASTS)
def test_what_is_remembered_never_lessens_a_need(found: Measured, past: Remembered) -> None:
    alone, both = estimate_need(found, Policy()), estimate_need(found, Policy(), past=past)

    assert both.target >= alone.target
    assert both.activity >= alone.activity
    assert both.memory >= alone.memory
    assert both.active_peak >= alone.active_peak
    assert both.confidence >= alone.confidence
