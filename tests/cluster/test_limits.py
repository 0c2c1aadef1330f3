"""What quotas with scopes and limit ranges really do: our arithmetic against the API server's own."""

import asyncio
from typing import Any

import msgspec
import pytest

from autoscaler.decide.guards.limit_range import broken_bound, with_defaults
from autoscaler.decide.guards.quota_scopes import why_not_counted
from autoscaler.kube import wire
from autoscaler.model.shapes import PodShape
from autoscaler.observe.rows import limit_range_row, quota_row
from autoscaler.observe.shapes import shape_of
from devcluster.errors import ApiError
from devcluster.rooms import DEFAULT_RESOURCE, Room
from tests.cluster.polling import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

KEY = f"requests.{DEFAULT_RESOURCE}"
QUOTAS: dict[str, dict[str, Any]] = {
    "terminating": {"scopes": ["Terminating"]},
    "lasting": {"scopes": ["NotTerminating"]},
    "burstable": {"scopes": ["NotBestEffort"]},
    "lasting-burstable": {"scopes": ["NotTerminating", "NotBestEffort"]},
    "best-effort": {"scopes": ["BestEffort"], "hard": {"pods": "50"}},
    "reaching": {"scopes": ["CrossNamespacePodAffinity"], "hard": {"pods": "50"}},
    **{
        f"class-{operator.lower()}": {
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]
            }
        }
        for operator, values in (
            ("In", ["urgent"]),
            ("NotIn", ["urgent"]),
            ("Exists", []),
            ("DoesNotExist", []),
        )
    },
}
TERM = {"topologyKey": "kubernetes.io/hostname", "namespaces": ["elsewhere"], "labelSelector": {}}
PODS: dict[str, dict[str, Any]] = {
    "plain": {},
    "short": {"activeDeadlineSeconds": 3600},
    "reaching": {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]
            }
        }
    },
    "urgent": {"priorityClassName": "urgent"},
}


def read(kind: type[Any], item: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(item), type=kind)


def shape(pod: dict[str, Any]) -> PodShape:
    return shape_of(read(wire.Pod, pod).spec)


async def test_a_scoped_quota_counts_the_pods_that_we_say_it_counts(room: Room) -> None:
    urgent = f"urgent-{room.namespace}"
    text = msgspec.json.encode([QUOTAS, PODS]).replace(b'"urgent"', f'"{urgent}"'.encode())
    quotas, pods = msgspec.json.decode(text)
    pods["urgent"] = pods.pop(urgent)
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}
    await room.cluster.apply([priority | {"metadata": {"name": urgent}}])
    base, created = f"/api/v1/namespaces/{room.namespace}", []
    for name, spec in quotas.items():
        body = {"metadata": {"name": name}, "spec": {"hard": {KEY: "50", "pods": "50"}} | spec}
        await room.cluster.api.post(f"{base}/resourcequotas", body)

    async def stored() -> list[dict[str, Any]]:
        return list((await room.cluster.api.get(f"{base}/resourcequotas"))["items"])

    await eventually(
        stored, lambda items: all("used" in item["status"] for item in items), what="quotas to be counted"
    )
    for name, spec in pods.items():
        for cpu in ("", "1m"):
            pod = room.pod(f"{name}-{'guaranteed' if cpu else 'boards-only'}", boards=1, **spec)
            if cpu:
                pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = cpu
            created.append(await room.cluster.api.post(f"{base}/pods", pod))

    shapes = [shape(pod) for pod in created]
    rows = {row.name: row for row in (quota_row(read(wire.ResourceQuota, q)) for q in await stored())}
    told = {
        name: sum(not why_not_counted(row, [one]) for one in shapes) for name, row in sorted(rows.items())
    }
    counted = await eventually(
        stored,
        lambda items: all(int(q["status"]["used"]["pods"]) == told[q["metadata"]["name"]] for q in items),
        what=f"quotas to have counted {told}",
        timeout_s=20,
    )

    assert len(counted) == len(QUOTAS)
    assert told == {
        "best-effort": 4,
        "burstable": 4,
        "class-doesnotexist": 6,
        "class-exists": 2,
        "class-in": 2,
        "class-notin": 6,
        "lasting": 6,
        "lasting-burstable": 3,
        "reaching": 2,
        "terminating": 2,
    }
    await room.cluster.kubectl("delete", "priorityclass", urgent, "--wait=false")


LIMITS: tuple[dict[str, Any], ...] = (
    {"type": "Container", "max": {DEFAULT_RESOURCE: "4"}},
    {"type": "Container", "min": {DEFAULT_RESOURCE: "2"}},
    {"type": "Container", "default": {DEFAULT_RESOURCE: "3"}, "max": {DEFAULT_RESOURCE: "4"}},
    {"type": "Container", "maxLimitRequestRatio": {DEFAULT_RESOURCE: "1"}},
    {"type": "Container", "maxLimitRequestRatio": {"cpu": "1500m"}},
    {"type": "Container", "default": {"cpu": "3"}, "defaultRequest": {"cpu": "1"}},
    {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"}},
    {"type": "Pod", "max": {DEFAULT_RESOURCE: "4"}},
    {"type": "Pod", "max": {"cpu": "2"}},
    {"type": "Pod", "min": {DEFAULT_RESOURCE: "3"}},
    {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
)
CONTAINERS: tuple[tuple[dict[str, Any], ...], ...] = (
    ({"limits": {DEFAULT_RESOURCE: "1"}},),
    ({"limits": {DEFAULT_RESOURCE: "4"}},),
    ({"limits": {DEFAULT_RESOURCE: "5"}},),
    ({"limits": {DEFAULT_RESOURCE: "2"}}, {}),
    ({"limits": {DEFAULT_RESOURCE: "3", "cpu": "1"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
    ({"limits": {DEFAULT_RESOURCE: "3", "cpu": "3"}, "requests": {"cpu": "1"}},),
    ({"limits": {DEFAULT_RESOURCE: "3"}, "requests": {"cpu": "1"}},),
)


async def test_a_limit_range_lets_in_what_we_say_it_lets_in(room: Room) -> None:
    """Every limit against every pod, by dry run; the pod that the server would make has the defaults we say."""
    base, seen, wrong = f"/api/v1/namespaces/{room.namespace}", set[bool](), []
    for limit in LIMITS:
        body = {"metadata": {"name": "limits"}, "spec": {"limits": [limit]}}
        row = limit_range_row(read(wire.LimitRange, await room.cluster.api.post(f"{base}/limitranges", body)))
        await asyncio.sleep(0.5)  # admission reads limit ranges from a watch of its own
        for number, containers in enumerate(CONTAINERS):
            pod = room.pod(f"pod-{number}")
            pod["spec"]["containers"] = [
                {"name": f"c{i}", "image": "registry.invalid/w:1", "resources": needs}
                for i, needs in enumerate(containers)
            ]
            try:
                answer = await room.cluster.api.post(f"{base}/pods?dryRun=All", pod)
            except ApiError as error:
                answer = str(error)
            given = with_defaults([row], shape(pod).containers)
            ours = broken_bound([row], given)
            seen.add(not ours)
            if (not ours) != isinstance(answer, dict):
                wrong.append((limit, containers, ours, answer))
            elif isinstance(answer, dict):
                theirs = shape(answer).containers
                if [c.limits for c in theirs] != [c.limits for c in given]:
                    wrong.append((limit, containers, given, theirs))
        await room.cluster.api.delete(f"{base}/limitranges/limits")

    assert wrong == []
    assert seen == {True, False}
