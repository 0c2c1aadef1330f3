import pytest
from build import MINUTE_MS, Board, Spec, boards, cluster, judge
from hypothesis import given
from worlds import policies, worlds

from autoscaler.decide import plan
from autoscaler.decide.quality import quality_of
from autoscaler.model.evidence import Source
from autoscaler.model.policy import Policy
from autoscaler.model.quality import Quality
from autoscaler.model.snapshot import Snapshot

TWO = (
    Source("dcgm", "engine", 15_000, interval_measured=True),
    Source("dcgm", "util", 30_000, interval_measured=False),
)


def quality(*seen: tuple[Board, ...] | None, **changes: object) -> Quality:
    spec = Spec(seen=seen, gpus=max(len(found or (0,)) for found in seen), **changes)  # type: ignore[arg-type]
    return quality_of(*judge(cluster(spec, sources=TWO)))


def test_a_measured_workload_s_quality_is_that_of_its_worst_board() -> None:
    found = quality(boards(0.5, age_ms=2_000), (Board(0.5, coverage=0.96, age_ms=9_000),))

    assert found == Quality(
        judged=2,
        measured=2,
        profile="dcgm",
        signal="engine",
        interval_ms=15_000,
        interval_measured=True,
        coverage=0.9583,
        age_ms=9_000,
    )


def test_a_workload_that_is_not_measured_says_why_and_what_was_seen_all_the_same() -> None:
    found = quality(boards(0.5), boards(0.5, coverage=0.5))

    assert (found.judged, found.measured, found.coverage, found.signal) == (2, 1, 0.5, "engine")
    assert found.doubt == "pod web-1: EvidencePartial: 50% of the samples of 30m, 95% needed"


def test_a_workload_without_any_sample_has_no_figures() -> None:
    found = quality(None)

    assert (found.profile, found.coverage, found.age_ms, found.interval_ms) == ("", None, None, 0)
    assert found.doubt == "pod web-0: EvidenceAbsent: no sample in 30m"


def test_the_source_is_the_one_that_the_verdict_rests_on() -> None:
    both = (Board(0.5, device="a"), Board(0.5, device="a", source=1))
    found = quality(both, workload={"replicas": 1})

    assert (found.signal, found.interval_ms) == ("engine", 15_000)


def test_without_a_verdict_it_is_the_source_that_says_most() -> None:
    some = (Board(0.5, device="a"), Board(0.5, device="a", source=1), Board(0.5, device="b", source=1))
    found = quality_of(*judge(cluster(Spec(gpus=3, seen=(some,)), sources=TWO)))

    assert (found.measured, found.signal, found.interval_measured) == (0, "util", False)


@pytest.mark.parametrize(
    "changes", [{"age_ms": 29 * MINUTE_MS}, {"pod": {"phase": "Pending"}}, {"pod": {"deleting": True}}]
)
def test_units_that_are_new_or_leave_are_not_counted(changes: dict[str, object]) -> None:
    found = quality(boards(0.5), **changes)

    assert (found.judged, found.measured) == (0, 0)


def test_a_sample_of_the_future_is_no_younger_than_now() -> None:
    assert quality(boards(0.5, age_ms=-5_000)).age_ms == 0


@given(worlds(), policies())
def test_every_row_has_a_quality_that_agrees_with_its_verdict(snapshot: Snapshot, rules: Policy) -> None:
    for row in plan(snapshot, rules, snapshot.taken_ms).rows:
        assert 0 <= row.quality.measured <= row.quality.judged <= row.units
        assert (row.coverage is None) or not row.quality.doubt
        assert row.quality.coverage is None or 0 <= row.quality.coverage <= 1
        assert row.quality.age_ms is None or row.quality.age_ms >= 0
