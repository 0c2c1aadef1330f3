"""The cheapest set, held against a search that looks at everything."""

from itertools import chain, combinations

import pytest
from build import GPU, Spec, cluster, judge
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.proposal import Proposal
from autoscaler.decide.seats import EXACT, Candidate, Rank, sets_by_cost, shortage
from autoscaler.decide.world import Unit
from autoscaler.model.cluster import PodRow
from autoscaler.model.reasons import Reason

_, JUDGED = judge(cluster(Spec()))
PROPOSAL = Proposal("make-room", Reason.MADE_ROOM, "evict", 1, 0, 1, "a test says so")
SHAPE = JUDGED.case.units[0].shape


def candidate(
    number: int, boards: int, *, tier: int = 0, priority: int = 0, cpu: int = 1, workload: int = -1
) -> Candidate:
    pod = PodRow(
        "team", f"p{number:02}", f"u{number}", shape=0, workload=number if workload < 0 else workload
    )
    rank = Rank(interactive=False, tier=tier, priority=priority)
    gives = {GPU: boards, "cpu": cpu, "pods": 1}
    return Candidate(Unit(number, pod, SHAPE), JUDGED, PROPOSAL, rank, gives, ())


def best(found: list[Candidate], short: dict[str, int]) -> list[str] | None:
    first = next(sets_by_cost(found, short, node="n", boards=(GPU,)), None)
    return [one.unit.pod.name for one in first[1]] if first else None


@pytest.mark.parametrize(
    ("found", "short", "expected"),
    [
        ([], {GPU: 1}, None),
        ([candidate(0, 1)], {GPU: 2}, None),
        ([candidate(0, 4), candidate(1, 1)], {GPU: 1}, ["p01"]),
        ([candidate(0, 1), candidate(1, 1), candidate(2, 2)], {GPU: 2}, ["p02"]),
        ([candidate(0, 1, tier=1), candidate(1, 4)], {GPU: 1}, ["p01"]),
        ([candidate(0, 1, priority=5), candidate(1, 4, priority=4)], {GPU: 1}, ["p01"]),
        ([candidate(0, 1), candidate(1, 1, workload=0)], {GPU: 2}, None),
        ([candidate(0, 1, cpu=1), candidate(1, 1, cpu=9)], {GPU: 1, "cpu": 5}, ["p01"]),
        ([candidate(0, 1), candidate(1, 1)], {"pods": 1}, ["p00"]),
    ],
)
def test_the_cheapest_set(found: list[Candidate], short: dict[str, int], expected: list[str] | None) -> None:
    assert expected == best(found, short)


def test_what_is_missing_is_told_by_component() -> None:
    assert shortage({GPU: 2, "cpu": 5, "memory": 0}, {GPU: 1, "cpu": 9}) == {GPU: 1}
    assert shortage({GPU: 2}, {}) == {GPU: 2}
    assert shortage({GPU: 2}, {GPU: -3}) == {GPU: 5}


candidates = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), max_size=6
).map(
    lambda rows: [
        candidate(n, boards, tier=tier, priority=priority, workload=workload)
        for n, (boards, tier, priority, workload) in enumerate(rows)
    ]
)


@given(candidates, st.integers(1, 6))
def test_no_other_set_is_better(found: list[Candidate], short: int) -> None:
    every = chain.from_iterable(combinations(found, size) for size in range(1, len(found) + 1))
    lawful = [
        some
        for some in every
        if len({one.unit.pod.workload for one in some}) == len(some)
        and sum(one.gives[GPU] for one in some) >= short
    ]
    prices = [
        (max(one.rank for one in some), sum(one.gives[GPU] for one in some), len(some)) for some in lawful
    ]
    first = next(sets_by_cost(found, {GPU: short}, node="n", boards=(GPU,)), None)

    assert (first is None) == (not lawful)
    if first:
        cost, _ = first
        assert (cost.top, cost.boards, cost.pods) == min(prices)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=EXACT + 1, max_size=30),
    st.integers(1, 40),
)
def test_beyond_the_bound_a_set_is_enough_has_nobody_to_spare_and_no_higher_rank_than_needed(
    rows: list[tuple[int, int]], short: int
) -> None:
    found = [candidate(n, boards, priority=priority) for n, (boards, priority) in enumerate(rows)]
    first = next(sets_by_cost(found, {GPU: short}, node="n", boards=(GPU,)), None)

    assert (first is None) == (sum(boards for boards, _ in rows) < short)
    if first:
        freed = sum(one.gives[GPU] for one in first[1])
        assert freed >= short
        assert all(freed - one.gives[GPU] < short for one in first[1])
        lower = sum(one.gives[GPU] for one in found if one.rank < first[0].top)
        assert lower < short
