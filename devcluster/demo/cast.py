"""Who plays which part in a scenario's day: read from the scenario, so that the story knows no names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devcluster.errors import ScenarioError
from devcluster.scenario import Scenario

DAY, NOON, NIGHT, DAWN = "day", "noon", "night", "dawn"
STAGES = (DAY, NOON, NIGHT, DAWN)

Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The parts of one scenario.

    `training` is the CronJob that the night starts, and `seat_boards` what a pod of it needs. `visitors` are the
    Deployments that come with the day and at noon: helpers of a class that yields (`yielding`), and `idlers` of none.
    `peaking` are workloads that were there before and whose load grows in the day.
    """

    training: Name
    visitors: frozenset[Name]
    idlers: frozenset[Name]
    yielding: frozenset[str]
    peaking: frozenset[Name]
    resource: str
    capacity: Mapping[str, int]
    most_per_container: Mapping[str, int]
    seat_boards: int


def cast_of(scenario: Scenario) -> Cast:
    """The parts of a scenario with a day; raises `ScenarioError` for one in which a part is missing."""
    missing = [name for name in STAGES if name not in scenario.stages]
    if missing:
        raise ScenarioError(f"scenario {scenario.name}: no stage {', '.join(missing)}")
    cron_jobs = [one for one in scenario.objects if one["kind"] == "CronJob"]
    resources = {name for pool in scenario.nodes for name in pool.accelerators}
    if len(cron_jobs) != 1 or len(resources) != 1:
        raise ScenarioError(f"scenario {scenario.name}: a day needs one CronJob and one accelerator resource")
    (resource,) = resources
    day = scenario.stages[DAY]
    deployments = [one for one in visiting(scenario) if one["kind"] == "Deployment"]
    classes = {_name(one): _pod_spec(one).get("priorityClassName", "") for one in deployments}
    present = {_name(one) for one in scenario.objects if "namespace" in one["metadata"]}
    return Cast(
        training=_name(cron_jobs[0]),
        visitors=frozenset(classes),
        idlers=frozenset(name for name, priority_class in classes.items() if not priority_class),
        yielding=frozenset(filter(None, classes.values())),
        peaking=frozenset((load.namespace, load.name) for load in day.loads) & present,
        resource=resource,
        capacity={
            node: pool.accelerators.get(resource, 0) for pool in scenario.nodes for node in pool.node_names()
        },
        most_per_container=_most_per_container(scenario, resource),
        seat_boards=_boards(cron_jobs[0]["spec"]["jobTemplate"], resource),
    )


def visiting(scenario: Scenario) -> list[dict[str, Any]]:
    """Everything that comes with the day and goes in the evening."""
    return [one for name in (DAY, NOON) for one in scenario.stages[name].objects]


def _name(item: Mapping[str, Any]) -> Name:
    return (item["metadata"]["namespace"], item["metadata"]["name"])


def _pod_spec(item: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = item["spec"]["template"]["spec"]
    return found


def _boards(item: Mapping[str, Any], resource: str) -> int:
    limits = [one.get("resources", {}).get("limits", {}) for one in _pod_spec(item)["containers"]]
    return sum(int(one.get(resource, 0)) for one in limits)


def _most_per_container(scenario: Scenario, resource: str) -> dict[str, int]:
    return {
        one["metadata"]["namespace"]: int(limit["max"][resource])
        for one in scenario.objects
        if one["kind"] == "LimitRange"
        for limit in one["spec"]["limits"]
        if limit["type"] == "Container" and resource in limit.get("max", {})
    }
