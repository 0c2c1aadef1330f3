import pytest
from build import Spec, boards, cluster, judge
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.marks import ALLOWED_GPUS, MIN_REPLICAS, ROLE
from autoscaler.decide.statements import Statements, allowed_counts, read_statements, whole_number
from autoscaler.model.cluster import NamespaceRow


@pytest.mark.parametrize(
    ("text", "counts"),
    [("1", (1,)), ("1,2,4", (1, 2, 4)), (" 4 , 2,2 ", (2, 4)), ("08", (8,)), ("9999", (9999,))],
)
def test_allowed_counts_are_read_ascending(text: str, counts: tuple[int, ...]) -> None:
    statement = allowed_counts({ALLOWED_GPUS: text})

    assert statement is not None
    assert (counts, "") == (statement.values, statement.fault)


@pytest.mark.parametrize(("text", "floor"), [("0", 0), ("1", 1), (" 12 ", 12)])
def test_the_floor_of_replicas_is_read(text: str, floor: int) -> None:
    statement = whole_number(MIN_REPLICAS, {MIN_REPLICAS: text})

    assert statement is not None
    assert ((floor,), "") == (statement.values, statement.fault)


def test_nothing_stated_is_no_statement() -> None:
    assert allowed_counts({}) is None
    assert whole_number(MIN_REPLICAS, {}) is None
    assert read_statements([("", {"team": "x"}), ("", {})]) == Statements()


SAID = {ALLOWED_GPUS: "2", MIN_REPLICAS: "4", ROLE: "training"}
PLACES = [
    ({"labels": SAID}, {}, ""),
    ({"annotations": SAID}, {}, ""),
    ({"pod": {"annotations": SAID}}, {}, " on a pod"),
    ({"pod": {"labels": SAID}}, {}, " on a pod"),
    ({}, {"namespaces": (NamespaceRow("team", annotations=SAID),)}, " on the namespace"),
    ({}, {"namespaces": (NamespaceRow("team", labels=SAID),)}, " on the namespace"),
]


@pytest.mark.parametrize(("spec", "tables", "place"), PLACES)
def test_a_statement_holds_wherever_it_may_stand(spec: dict, tables: dict, place: str) -> None:
    _, judged = judge(cluster(Spec(seen=(boards(0.0),) * 2, **spec), **tables))
    stated = judged.case.stated

    assert stated.allowed is not None
    assert stated.floor is not None
    assert (stated.allowed.values, stated.floor.values) == ((2,), (4,))
    assert (judged.assessment.role, judged.assessment.role_cause) == ("training", f"{ROLE}=training{place}")


def test_the_neighbours_statements_are_not_ours() -> None:
    _, judged = judge(
        cluster(Spec(), Spec("other", annotations=SAID), namespaces=(NamespaceRow("lab", annotations=SAID),))
    )

    assert judged.case.stated == Statements()


COUNTS = st.sets(st.integers(1, 8), min_size=1)


@given(st.lists(COUNTS, min_size=1, max_size=4), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_the_strictest_of_several_holds(allowed: list[set[int]], floors: list[int]) -> None:
    found = read_statements(
        [("", {ALLOWED_GPUS: ",".join(map(str, counts))}) for counts in allowed]
        + [("", {MIN_REPLICAS: str(floor)}) for floor in floors]
    )

    assert found.allowed is not None
    assert found.floor is not None
    assert tuple(sorted(set.intersection(*allowed))) == found.allowed.values
    assert (max(floors),) == found.floor.values
    assert bool(found.allowed.values) != bool(found.allowed.fault)


@given(st.permutations(["serving", "interactive", "training"]), st.integers(1, 3))
def test_the_most_careful_role_holds(roles: list[str], count: int) -> None:
    found = read_statements([("", {ROLE: role}) for role in roles[:count]]).role

    assert found is not None
    assert found.role == next(r for r in ("training", "interactive", "serving") if r in roles[:count])
