"""What holds for a workload is told with everybody who says so."""

from typing import Any

import pytest
from build import NOW_MS, Spec, boards, cluster, policy

from autoscaler.decide import explain_fully, plan
from autoscaler.decide.marks import ALLOWED_GPUS, MIN_GPUS, MIN_REPLICAS, MODE, ROLE
from autoscaler.model.cluster import NamespaceRow

ALL = "make-room, right-size, scale-in, idle, deactivate"


def terms(spec: Spec, namespace: dict[str, str] | None = None, **sections: Any) -> tuple[str, ...]:
    rules = policy(**sections)
    snapshot = cluster(spec, namespaces=(NamespaceRow("team", annotations=namespace or {}),))
    (row,) = explain_fully(snapshot, rules, NOW_MS, plan(snapshot, rules, NOW_MS).rows)
    assert row.explanation is not None
    return row.explanation.terms


def test_without_statements_the_policy_s_modes_hold() -> None:
    assert terms(Spec()) == (f"mode of {ALL}: recommend (recommend by policy)",)
    assert terms(Spec(), modes={"idle": "apply"}) == (
        "mode of make-room, right-size, scale-in, deactivate: recommend (recommend by policy)",
        "mode of idle: apply (apply by policy)",
    )
    assert terms(Spec(), modes={"namespaces": {"team": "observe"}}) == (
        f"mode of {ALL}: observe (observe by policy)",
    )


@pytest.mark.parametrize(
    ("own", "namespace", "holds"),
    [
        ("recommend", {}, f"recommend (apply by policy; at most recommend by {MODE}=recommend)"),
        ("apply", {MODE: "observe"}, f"observe (apply by policy; at most observe by {MODE}=observe on the namespace)"),
        ("appply", {}, f"observe (apply by policy; at most observe by {MODE}=appply (unreadable))"),
    ],
)  # fmt: skip
def test_the_strictest_of_policy_and_owner_holds(own: str, namespace: dict[str, str], holds: str) -> None:
    assert terms(Spec(annotations={MODE: own}), namespace, modes={"default": "apply"}) == (
        f"mode of {ALL}: {holds}",
    )


def test_interactive_work_is_at_most_recommended() -> None:
    found = terms(Spec(annotations={ROLE: "interactive"}), modes={"default": "apply"})

    assert found == (
        f"mode of {ALL}: recommend (apply by policy; at most recommend, since it is interactive)",
        f"{ROLE}: interactive ('interactive' on the workload)",
    )


def test_every_statement_is_told_with_its_place_once() -> None:
    spec = Spec(
        gpus=4,
        seen=(boards(0.5, 0.0, 0.0, 0.0),) * 2,
        annotations={ALLOWED_GPUS: "1,2", MIN_REPLICAS: "0"},
        pod={"annotations": {ALLOWED_GPUS: "2,4", MIN_GPUS: "x"}},
    )
    found = terms(spec, {MIN_REPLICAS: "2"})

    assert found[1:] == (
        f"{ALLOWED_GPUS}: 2 ('1,2' on the workload, '2,4' on a pod)",
        f"{MIN_GPUS}: {MIN_GPUS} on a pod is not a whole number: 'x' ('x' on a pod)",
        f"{MIN_REPLICAS}: 2 ('2' on the namespace, '0' on the workload)",
    )
