import pytest
from build import GPU, node
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.placement import admits, place, requirement_holds, tolerates
from autoscaler.model.cluster import NodeRow
from autoscaler.model.resources import Vector
from autoscaler.model.shapes import ContainerShape, PodShape, Requirement, Taint, Toleration

GPU_TAINT = Taint(GPU, "present", "NoSchedule")


def shape(**changes: object) -> PodShape:
    return PodShape(containers=(ContainerShape("main"),), **changes)  # type: ignore[arg-type]


def spread(count: int, free: dict[str, int], gpus: int = 1, **changes: object) -> tuple[str, ...] | None:
    nodes = {name: node(name, **changes) for name in free}
    return place(
        shape(), {GPU: gpus}, count, nodes=nodes, free={n: {GPU: f, "pods": 9} for n, f in free.items()}
    )


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(GPU, "Exists"), True),
        (Toleration(GPU, "Exists", effect="NoSchedule"), True),
        (Toleration(GPU, "Exists", effect="NoExecute"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(GPU, "Equal", "present"), True),
        (Toleration(GPU, "", "present"), True),
        (Toleration(GPU, "Equal", "absent"), False),
        (Toleration("other", "Exists"), False),
        (Toleration(), False),
    ],
)
def test_a_taint_is_tolerated_as_the_scheduler_has_it(toleration: Toleration, tolerated: bool) -> None:
    assert tolerated is tolerates((toleration,), GPU_TAINT)
    assert not tolerates((), GPU_TAINT)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "holds"),
    [
        ("In", ("a", "b"), {"k": "b"}, True),
        ("In", ("a",), {}, False),
        ("NotIn", ("a",), {}, True),
        ("NotIn", ("a",), {"k": "a"}, False),
        ("Exists", (), {"k": ""}, True),
        ("DoesNotExist", (), {"k": ""}, False),
        ("DoesNotExist", (), {}, True),
        ("Gt", ("4",), {"k": "5"}, True),
        ("Gt", ("5",), {"k": "5"}, False),
        ("Lt", ("5",), {"k": "4"}, True),
        ("Lt", ("5",), {}, False),
        ("Gt", (), {"k": "5"}, False),
        ("Gt", ("many",), {"k": "5"}, False),
        ("Near", ("a",), {"k": "a"}, False),
    ],
)
def test_a_node_requirement_holds_as_the_scheduler_has_it(
    operator: str, values: tuple[str, ...], labels: dict[str, str], holds: bool
) -> None:
    assert holds is requirement_holds(Requirement("k", operator, values), labels)


NEEDS_A = (Requirement("k", "In", ("a",)),)
NEEDS_B = (Requirement("k", "In", ("b",)), Requirement("z", "Exists"))


@pytest.mark.parametrize(
    ("host", "pod", "admitted"),
    [
        (node(), shape(), True),
        (node(ready=False), shape(), False),
        (node(unschedulable=True), shape(), False),
        (node(deleting=True), shape(), False),
        (node(taints=(GPU_TAINT,)), shape(), False),
        (node(taints=(Taint(GPU, "", "NoExecute"),)), shape(), False),
        (node(taints=(Taint(GPU, "", "PreferNoSchedule"),)), shape(), True),
        (node(taints=(GPU_TAINT,)), shape(tolerations=(Toleration(GPU, "Exists"),)), True),
        (node(labels={"gpu-type": "a100"}), shape(node_selector={"gpu-type": "a100"}), True),
        (node(), shape(node_selector={"gpu-type": "a100"}), False),
        (node(labels={"k": "a"}), shape(node_terms=(NEEDS_B, NEEDS_A)), True),
        (node(labels={"k": "b"}), shape(node_terms=(NEEDS_B, NEEDS_A)), False),
        (node(), shape(node_terms=((),)), False),
    ],
)
def test_a_node_admits_by_its_state_labels_and_taints(host: NodeRow, pod: PodShape, admitted: bool) -> None:
    assert admitted is admits(host, pod)


@pytest.mark.parametrize(
    ("count", "free", "gpus", "places"),
    [
        (0, {"a": 0}, 1, ()),
        (1, {"a": 8, "b": 1}, 1, ("b",)),
        (2, {"a": 8, "b": 1}, 1, ("b", "a")),
        (1, {"b": 4, "a": 4}, 2, ("a",)),
        (3, {"a": 4, "b": 2}, 2, ("b", "a", "a")),
        (4, {"a": 4, "b": 2}, 2, None),
        (1, {}, 1, None),
        (1, {"a": -1}, 1, None),
    ],
)
def test_pods_go_where_they_fit_tightest(
    count: int, free: dict[str, int], gpus: int, places: tuple[str, ...] | None
) -> None:
    assert places == spread(count, free, gpus)


def test_a_pod_also_needs_a_pod_seat() -> None:
    full = {"a": {GPU: 8, "pods": 0}}

    assert place(shape(), {GPU: 1}, 1, nodes={"a": node("a")}, free=full) is None


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(-2, 9), max_size=4),
    st.integers(0, 12),
    st.integers(1, 4),
)
def test_what_is_placed_fits_together_and_does_not_depend_on_order(
    free: dict[str, int], count: int, gpus: int
) -> None:
    places = spread(count, free, gpus)
    seats = sum(max(0, amount) // gpus for amount in free.values())

    assert (places is None) == (seats < count)
    assert places == spread(count, dict(reversed(free.items())), gpus)
    for name in set(places or ()):
        assert (places or ()).count(name) * gpus <= free[name]


@given(st.integers(0, 5))
def test_free_room_is_not_changed_by_asking(count: int) -> None:
    free: dict[str, Vector] = {"a": {GPU: 3, "pods": 9}}
    place(shape(), {GPU: 1}, count, nodes={"a": node("a")}, free=free)

    assert free == {"a": {GPU: 3, "pods": 9}}


@pytest.mark.parametrize(
    ("operator", "values", "admitted"),
    [
        ("In", ("node-1",), True),
        ("In", ("other",), False),
        ("NotIn", ("node-1",), False),
        ("Near", (), False),
    ],
)
def test_a_term_may_be_about_the_nodes_name(operator: str, values: tuple[str, ...], admitted: bool) -> None:
    by_name = Requirement("metadata.name", operator, values, of_name=True)
    label_of_that_name = node("node-1", labels={"metadata.name": "other"})

    assert admits(label_of_that_name, shape(node_terms=((by_name,),))) == admitted
    assert not requirement_holds(by_name, {"metadata.name": "node-1"})
