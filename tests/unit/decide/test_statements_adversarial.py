import pytest
from build import Spec, boards, cluster, judge
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.decide.marks import ALLOWED_GPUS, MIN_REPLICAS, ROLE
from autoscaler.decide.statements import allowed_counts, read_statements, stated_role, whole_number

JUNK = [
    "",
    " ",
    ",",
    "0",
    "1,,2",
    "1,0",
    "-1",
    "1.5",
    "two",
    "1;2",
    "1 2",
    "٣",
    "1e3",
    "99999",
    "1,2,",
    "0x1",
    "\uff11",
]


@pytest.mark.parametrize("text", JUNK)
def test_counts_that_cannot_be_read_withhold_consent_and_are_named(text: str) -> None:
    statement = allowed_counts({ALLOWED_GPUS: text})

    assert statement is not None
    assert statement.values == ()
    assert repr(text) in statement.fault


@pytest.mark.parametrize("text", ["", "-1", "1.0", "none", "1,2", "٣", "1" * 7, "+1", "0x0"])
def test_a_floor_that_cannot_be_read_is_no_floor_of_zero(text: str) -> None:
    statement = whole_number(MIN_REPLICAS, {MIN_REPLICAS: text})

    assert statement is not None
    assert statement.values == ()
    assert repr(text[:40]) in statement.fault


@given(st.text(max_size=30))
def test_a_statement_has_values_or_a_fault(text: str) -> None:
    for statement in (allowed_counts({ALLOWED_GPUS: text}), whole_number(MIN_REPLICAS, {MIN_REPLICAS: text})):
        assert statement is not None
        assert bool(statement.values) != bool(statement.fault)


@pytest.mark.parametrize("text", ["", "batch", "train", "training,serving", "\u0442raining"])
def test_a_role_that_cannot_be_read_is_training(text: str) -> None:
    found = stated_role({ROLE: text})

    assert found is not None
    assert found.role == "training"
    assert found.cause.endswith("(unreadable)")


@pytest.mark.parametrize("key", [ALLOWED_GPUS, MIN_REPLICAS])
def test_one_unreadable_statement_withholds_whatever_the_others_say(key: str) -> None:
    found = read_statements([("", {key: "1"}), (" on a pod", {key: "many"})])
    statement = found.allowed or found.floor

    assert statement is not None
    assert statement.values == ()
    assert f"{key} on a pod" in statement.fault


def test_counts_that_contradict_each_other_allow_nothing() -> None:
    found = read_statements([("", {ALLOWED_GPUS: "1,2"}), ("", {ALLOWED_GPUS: "4"})]).allowed

    assert found is not None
    assert found.fault == f"its statements of {ALLOWED_GPUS} have no count in common"


def test_one_pod_of_many_is_heard() -> None:
    snapshot = cluster(Spec(seen=(boards(0.0),) * 3))
    first, second, third = snapshot.pods
    second, third = replace(second, annotations={MIN_REPLICAS: "3"}), replace(third, labels={ROLE: "junk"})
    stated = judge(replace(snapshot, pods=(first, second, third)))[1].case.stated

    assert stated.floor is not None
    assert stated.floor.values == (3,)
    assert stated.role is not None
    assert stated.role.role == "training"
