"""What a queue may still use, as Kueue counts it; the same numbers are tried against the real one in the cluster tests."""

import pytest
from build import GPU, NOW_MS
from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import DOOR, admitted, queue, queued, quota

from autoscaler.decide.queues import Queues
from autoscaler.model.kueue import ClusterQueueRow, CohortRow, FlavorQuota, FlavorUse, KueueWorkload
from autoscaler.model.snapshot import Snapshot

CHECKED = (
    # The figures that the real Kueue confirmed: queues with what is used, cohorts, and what is free in each queue.
    ((queue("a", quota(4), used=1),), (), {"a": 3}),
    (
        (
            queue("a", quota(4), used=1, cohort="all"),
            queue("b", quota(4, borrowing=2), cohort="all"),
            queue("c", quota(0, borrowing=0), cohort="all"),
        ),
        (),
        {"a": 7, "b": 6, "c": 0},
    ),
    (
        (
            queue("a", quota(4), used=6, cohort="all"),
            queue("b", quota(4, borrowing=2), cohort="all"),
            queue("c", quota(0, borrowing=0), cohort="all"),
        ),
        (),
        {"a": 2, "b": 2, "c": 0},
    ),
    (
        (
            queue("a", quota(4, lending=1), used=5, cohort="all"),
            queue("b", quota(2), cohort="all"),
            queue("c", quota(3, borrowing=1, lending=2), cohort="all"),
        ),
        (),
        {"a": 3, "b": 3, "c": 4},
    ),
    (
        (
            queue("a", quota(1), used=5, cohort="team"),
            queue("b", quota(1, borrowing=1), cohort="team"),
            queue("c", quota(1, lending=0), cohort="root"),
        ),
        (
            CohortRow("root", quotas=(quota(3),)),
            CohortRow("team", parent="root", quotas=(quota(2, borrowing=2, lending=1),)),
        ),
        {"a": 1, "b": 1, "c": 3},
    ),
)


def free(
    queues: tuple[ClusterQueueRow, ...], cohorts: tuple[CohortRow, ...] = (), *, flavor: str = "a100"
) -> dict[str, int | None]:
    found = Queues(Snapshot(taken_ms=NOW_MS, cluster_queues=queues, cohorts=cohorts))
    told = {row.name: found.free(row, GPU) for row in queues}
    return {name: None if left is None else left.get(flavor) for name, left in told.items()}


@pytest.mark.parametrize(("queues", "cohorts", "left"), CHECKED)
def test_what_is_free_is_what_kueue_would_admit(
    queues: tuple[ClusterQueueRow, ...], cohorts: tuple[CohortRow, ...], left: dict[str, int]
) -> None:
    assert left == free(queues, cohorts)


def test_more_reserved_than_there_is_is_told_as_less_than_nothing() -> None:
    assert free((queue("a", quota(4), used=6),)) == {"a": -2}


def test_each_flavor_counts_by_itself_and_other_resources_do_not() -> None:
    row = queue("a", quota(4), FlavorQuota("h100", GPU, 2), FlavorQuota("cpus", "cpu", 1000), used=1)

    assert Queues(Snapshot(taken_ms=NOW_MS, cluster_queues=(row,))).free(row, GPU) == {"a100": 3, "h100": 2}


def test_a_queue_without_quota_of_a_resource_has_no_flavor_of_it() -> None:
    row = queue("a", FlavorQuota("cpus", "cpu", 1000))

    assert Queues(Snapshot(taken_ms=NOW_MS, cluster_queues=(row,))).free(row, GPU) == {}


@pytest.mark.parametrize(
    ("queues", "cohorts"),
    [
        ((queue("a", unreadable=("nominal",)),), ()),
        ((queue("a", cohort="all"), queue("b", cohort="all", unreadable=("x",))), ()),
        ((queue("a", cohort="all"),), (CohortRow("all", unreadable=("x",)),)),
        ((queue("a", cohort="all"),), (CohortRow("all", parent="up"), CohortRow("up", unreadable=("x",)))),
        (
            (queue("a", cohort="all"),),
            (CohortRow("all"), CohortRow("below", parent="all", unreadable=("x",))),
        ),
        ((queue("a", cohort="one"),), (CohortRow("one", parent="two"), CohortRow("two", parent="one"))),
        ((queue("a", cohort="one"),), (CohortRow("one", parent="one"),)),
    ],
)
def test_what_cannot_be_read_or_goes_in_a_circle_is_not_known(
    queues: tuple[ClusterQueueRow, ...], cohorts: tuple[CohortRow, ...]
) -> None:
    assert free(queues, cohorts)["a"] is None


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 9), st.integers(0, 3))
def test_nobody_may_borrow_what_is_not_there(nominal: list[int], used: int, limit: int) -> None:
    """A cohort's members can never be told more than all of it, and a borrowing limit only ever takes away."""
    rows = tuple(
        queue(f"q{n}", quota(own), used=used if n == 0 else 0, cohort="all") for n, own in enumerate(nominal)
    )
    bounded = tuple(
        queue(row.name, quota(own, borrowing=limit), used=row.uses[0].amount, cohort="all")
        for row, own in zip(rows, nominal, strict=True)
    )
    loose, tight = free(rows), free(bounded)

    for name, left in loose.items():
        bound = tight[name]
        assert left is not None
        assert bound is not None
        assert left == sum(nominal) - used
        assert bound <= left


def test_a_workload_stands_for_its_owners_until_it_has_ended() -> None:
    rows = (
        admitted("b"),
        admitted("a", owners=("uid-team-a", "uid-pod")),
        admitted("c", finished=True),
        admitted("d", namespace="lab"),
    )
    queues = Queues(Snapshot(taken_ms=NOW_MS, kueue_workloads=rows))

    def names(*uids: str, namespace: str = "team") -> list[str]:
        return [row.name for row in queues.standing_for(namespace, uids)]

    assert names("uid-team-a", "uid-pod") == ["job-a"]
    assert names("uid-team-b", "uid-pod") == ["job-a", "job-b"]
    assert names("uid-team-c", "uid-team-d", "unknown") == []
    assert names("uid-team-d", namespace="lab") == ["job-d"]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (admitted(), "gpus"),
        (queued(), "gpus"),
        (queued(queue="other"), None),
        (admitted(cluster_queue="gone"), None),
    ],
)
def test_a_queue_is_found_by_admission_or_by_its_door(row: KueueWorkload, found: str | None) -> None:
    queues = Queues(Snapshot(taken_ms=NOW_MS, cluster_queues=(queue(),), local_queues=(DOOR,)))
    its = queues.cluster_queue_of(row)

    assert found == (its.name if its else None)


def test_uses_of_other_flavors_are_not_counted() -> None:
    row = queue(
        "a",
        quota(4),
        uses=(FlavorUse("a100", GPU, 1), FlavorUse("h100", GPU, 2), FlavorUse("a100", "cpu", 9)),
    )

    assert free((row,)) == {"a": 3}
