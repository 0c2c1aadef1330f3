from build import GPU, node
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.placement import admits, place, requirement_holds
from autoscaler.model.shapes import PodShape, Requirement

HUGE = 2**63 - 1
TEXT = st.text(max_size=8) | st.just("9" * 5000)


def test_a_node_without_a_row_of_free_room_has_none() -> None:
    assert place(PodShape(()), {GPU: 1}, 1, nodes={"a": node("a")}, free={}) is None


def test_a_demand_for_nothing_still_takes_a_pod_seat() -> None:
    assert place(PodShape(()), {GPU: 0}, 2, nodes={"a": node("a")}, free={"a": {"pods": 1}}) is None


def test_a_negative_count_places_nothing() -> None:
    assert place(PodShape(()), {}, -3, nodes={}, free={}) == ()


@given(st.integers(1, HUGE), st.integers(-HUGE, HUGE))
def test_no_amount_overflows(asked: int, free: int) -> None:
    found = place(
        PodShape(()), {GPU: asked}, 1, nodes={"a": node("a")}, free={"a": {GPU: free, "pods": HUGE}}
    )

    assert (found == ("a",)) == (asked <= free)


@given(TEXT, st.lists(TEXT, max_size=2), st.dictionaries(st.just("k"), TEXT))
def test_no_requirement_makes_it_raise(operator: str, values: list[str], labels: dict[str, str]) -> None:
    for name in (operator, "Gt", "Lt"):
        assert requirement_holds(Requirement("k", name, tuple(values)), labels) in {True, False}


def test_only_empty_terms_admit_nowhere() -> None:
    assert not admits(node(), PodShape((), node_terms=((), ())))
