from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.resources import Vector, add, fits, maximum, scarcest, subtract, total

VECTORS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(-5, 2**40))


def test_sums_and_maxima_go_by_component() -> None:
    left, right = {"cpu": 1, "gpu": 2}, {"gpu": 3, "memory": 4}

    assert add(left, right) == {"cpu": 1, "gpu": 5, "memory": 4}
    assert subtract(left, right) == {"cpu": 1, "gpu": -1, "memory": -4}
    assert maximum(left, right) == {"cpu": 1, "gpu": 3, "memory": 4}
    assert total([left, left]) == {"cpu": 2, "gpu": 4}
    assert total([]) == {}


def test_asking_for_nothing_always_fits() -> None:
    assert fits({}, {})
    assert fits({"gpu": 0}, {})
    assert fits({"gpu": 0}, {"gpu": -3})
    assert not fits({"gpu": 1}, {})


def test_the_scarcest_component_has_the_largest_shortfall() -> None:
    assert scarcest({"cpu": 1}, {"cpu": 1}) is None
    assert scarcest({"cpu": 3, "gpu": 9}, {"cpu": 1, "gpu": 1}) == "gpu"
    assert scarcest({"b": 1, "a": 1}, {}) == "a"
    assert scarcest({"cpu": 0}, {"cpu": -1}) is None


@given(VECTORS, VECTORS)
def test_adding_and_subtracting_undo_each_other(left: Vector, right: Vector) -> None:
    assert left == {n: a for n, a in subtract(add(left, right), right).items() if n in left}
    assert add(left, right) == add(right, left) == total([left, right])


@given(VECTORS, VECTORS)
def test_a_demand_fits_or_has_a_scarcest_component(demand: Vector, free: Vector) -> None:
    assert fits(demand, free) == (scarcest(demand, free) is None)


@given(VECTORS, VECTORS)
def test_no_operation_changes_its_arguments(left: Vector, right: Vector) -> None:
    before = dict(left), dict(right)
    for operation in (add, subtract, maximum):
        operation(left, right)

    assert before == (left, right)
