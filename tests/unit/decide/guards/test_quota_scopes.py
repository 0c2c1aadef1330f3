"""A scoped quota counts the pods of its scope and no others."""

from typing import Any

import pytest
from build import GPU, Spec, boards, cluster, judge, resize

from autoscaler.decide.guards.limits import guard_quota
from autoscaler.decide.guards.quota_scopes import is_best_effort
from autoscaler.decide.proposal import Ruling
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Quota
from autoscaler.model.shapes import ContainerShape, PodShape, Requirement

KEY = f"requests.{GPU}"
BOARDS_ONLY = {"requests": {GPU: 2}, "limits": {GPU: 2}}


def ask(*scopes: Requirement, **spec: Any) -> Ruling:
    """A quota that is full, for pods in these scopes."""
    full = Quota("team", "q", {KEY: 2}, {KEY: 2}, scopes=scopes)
    found = Spec(**{"gpus": 2, "seen": (boards(0.5, 0.0),), **spec})
    world, judged = judge(cluster(found, quotas=(full,)))
    return guard_quota(world, judged, resize(2, 1), Tally.of(world))


def scope(name: str, operator: str = "Exists", *values: str) -> Requirement:
    return Requirement(name, operator, values)


@pytest.mark.parametrize(
    ("found", "spec", "counted"),
    [
        (scope("Terminating"), {}, False),
        (scope("Terminating"), {"shape": {"deadline": True}}, True),
        (scope("NotTerminating"), {}, True),
        (scope("NotTerminating"), {"shape": {"deadline": True}}, False),
        (scope("BestEffort"), {}, False),
        (scope("BestEffort"), {"container": BOARDS_ONLY}, True),
        (scope("NotBestEffort"), {}, True),
        (scope("NotBestEffort"), {"container": BOARDS_ONLY}, False),
        (scope("CrossNamespacePodAffinity"), {}, False),
        (scope("CrossNamespacePodAffinity"), {"shape": {"cross_namespace": True}}, True),
        (scope("PriorityClass"), {}, False),
        (scope("PriorityClass"), {"shape": {"priority_class": "high"}}, True),
        (scope("PriorityClass", "In", "high", "low"), {"shape": {"priority_class": "high"}}, True),
        (scope("PriorityClass", "In", "low"), {"shape": {"priority_class": "high"}}, False),
        (scope("PriorityClass", "In", "low"), {}, False),
        (scope("PriorityClass", "NotIn", "low"), {"shape": {"priority_class": "low"}}, False),
        (scope("PriorityClass", "NotIn", "low"), {}, True),
        (scope("PriorityClass", "DoesNotExist"), {}, True),
        (scope("PriorityClass", "DoesNotExist"), {"shape": {"priority_class": "high"}}, False),
        (scope("PriorityClass", "Like", "hi"), {"shape": {"priority_class": "high"}}, True),
    ],
)
def test_a_full_quota_refuses_only_pods_of_its_scope(
    found: Requirement, spec: dict[str, Any], counted: bool
) -> None:
    assert (ask(found, **spec).reason == "QuotaShort") == counted


def test_all_scopes_of_a_quota_have_to_be_met() -> None:
    both = (scope("NotTerminating"), scope("PriorityClass", "In", "high"))

    assert ask(*both, shape={"priority_class": "high"}).reason == "QuotaShort"
    assert ask(*both).detail == "no quota counts its pods: quota q is for PriorityClass In high"
    assert ask(scope("Terminating")).detail == "no quota counts its pods: quota q is for Terminating"


@pytest.mark.parametrize(
    ("amounts", "best_effort"),
    [({}, True), ({"cpu": 0}, True), ({"cpu": 1}, False), ({"memory": 1}, False), ({GPU: 1}, True)],
)
def test_only_processor_and_memory_decide_the_class_of_service(
    amounts: dict[str, int], best_effort: bool
) -> None:
    for main in (ContainerShape("main", requests=amounts), ContainerShape("main", limits=amounts)):
        assert is_best_effort(PodShape(containers=(main,))) == best_effort
