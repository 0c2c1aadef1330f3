"""What the API server's own objects allow: each guard against the real controller whose rule it keeps."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import DEFAULT_RESOURCE, Room
from tests.cluster.live_service import LiveService
from tests.cluster.stories import half_used, lightly_used, play, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

QUOTA_KEY = f"requests.{DEFAULT_RESOURCE}"
NO_TOUCH = {"karpenter.sh/do-not-disrupt": "true"}


def named(room: Room, api: str, kind: str, **body: Any) -> dict[str, Any]:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": kind.lower(), "namespace": room.namespace},
        **body,
    }


def quota(room: Room, boards: int) -> dict[str, Any]:
    return named(room, "v1", "ResourceQuota", spec={"hard": {QUOTA_KEY: str(boards)}})


def limit_range(room: Room, **limits: dict[str, str]) -> dict[str, Any]:
    return named(room, "v1", "LimitRange", spec={"limits": [{"type": "Container", **limits}]})


def budget(room: Room, minimum: int) -> dict[str, Any]:
    spec = {"minAvailable": minimum, "selector": {"matchLabels": {"app": "app"}}}
    return named(room, "policy/v1", "PodDisruptionBudget", spec=spec)


async def quota_short(room: Room) -> None:
    await room.add_nodes()
    await play(room, quota(room, 2), room.deployment("app", boards=2), load=half_used(room))


async def limit_minimum(room: Room) -> None:
    await room.add_nodes()
    minimum = limit_range(room, min={DEFAULT_RESOURCE: "2"})
    await play(room, minimum, room.deployment("app", boards=2), load=half_used(room))


async def limit_default(room: Room) -> None:
    """Admission gives a board to the container that states none."""
    await room.add_nodes()
    app = room.deployment("app", boards=1)
    sidecar = {"name": "sidecar", "image": "registry.invalid/sidecar:1"}
    app["spec"]["template"]["spec"]["containers"].append(sidecar)
    await play(room, limit_range(room, default={DEFAULT_RESOURCE: "1"}), app, load=half_used(room))


async def disruption_budget(room: Room) -> None:
    await room.add_nodes()
    await play(room, budget(room, 3), room.deployment("app", replicas=3), load=lightly_used(room), pods=3)


async def autoscaled(room: Room) -> None:
    await room.add_nodes()
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5, "metrics": [cpu]}
    await play(
        room,
        room.deployment("app", replicas=3),
        named(room, "autoscaling/v2", "HorizontalPodAutoscaler", spec=spec),
        load=lightly_used(room),
        pods=3,
    )


async def paused(room: Room) -> None:
    await room.add_nodes()
    await play(room, room.deployment("app", boards=2), load=half_used(room))
    await room.cluster.kubectl("-n", room.namespace, "rollout", "pause", "deployment/app")


async def protected(room: Room) -> None:
    await room.add_nodes()
    app = room.deployment("app", boards=2)
    app["spec"]["template"]["metadata"]["annotations"] = NO_TOUCH
    await play(room, app, load=half_used(room))


async def no_room(room: Room) -> None:
    """Every board of its nodes is taken, so a surge pod would wait."""
    await room.add_nodes(boards=2)
    await play(room, room.deployment("app", boards=2), load=half_used(room))


async def bare(room: Room) -> None:
    await room.add_nodes()
    await play(room, room.pod("app", boards=2), load=half_used(room, kind="Pod"))


STAGES = (
    *(quota_short, limit_minimum, limit_default, disruption_budget, autoscaled),
    *(paused, protected, no_room, bare),
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rooms(cluster: Cluster) -> AsyncIterator[dict[str, Room]]:
    stages = {stage.__name__.replace("_", "-"): stage for stage in STAGES}
    async with staged(cluster, stages) as opened:
        yield opened


@pytest.mark.parametrize(
    ("story", "reason", "told"),
    [
        ("limit-minimum", Reason.LIMIT_RANGE, "1 gpuconfig.com/gpu is under the Container minimum 2"),
        ("autoscaled", Reason.OTHER_OWNER, "HorizontalPodAutoscaler horizontalpodautoscaler owns replicas"),
        ("no-room", Reason.NO_SURGE, "no node has room for 1 surge pods"),
        ("bare", Reason.NO_LEVER, "a bare pod cannot be changed in place"),
    ],
)
async def test_a_rule_of_the_cluster_refuses_what_it_would_refuse(
    service: LiveService, rooms: dict[str, Room], story: str, reason: Reason, told: str
) -> None:
    row = await service.until_reason(rooms[story], "app", reason)

    assert told in row.detail
    assert service.decisions(rooms[story]) == []


async def test_a_quota_counts_the_surge_pod_and_lets_it_pass_once_there_is_room(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["quota-short"]
    short = await service.until_reason(room, "app", Reason.QUOTA_SHORT)
    assert service.decisions(room) == []

    await room.cluster.apply([quota(room, 3)])
    fits = await service.until_reason(room, "app", Reason.RIGHT_SIZED, timeout_s=20)

    assert f"{QUOTA_KEY} 2 used + 1 for the surge > 2" in short.detail
    assert f"{QUOTA_KEY} 2 used" not in fits.detail
    assert any(check.detail == "the rollout fits: 2 + 1 of 3" for check in fits.checks)


async def test_a_disruption_budget_holds_for_scaling_too(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["disruption-budget"]
    refused = await service.until_reason(room, "app", Reason.DISRUPTION_BUDGET)
    assert service.decisions(room) == []

    await room.cluster.apply([budget(room, 1)])
    allowed = await service.until_reason(room, "app", Reason.SCALED_IN, timeout_s=20)

    assert (refused.refusals[0].method, refused.refusals[0].before) == ("scale-in", 3)
    assert "2 would go, 0 allowed" in refused.detail
    assert allowed.action is not None
    assert (allowed.action.lever, allowed.action.before, allowed.action.after) == ("scale", 3, 1)


async def test_nothing_is_planned_while_the_owner_has_paused_the_rollout(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["paused"]
    row = await service.until_reason(room, "app", Reason.ROLLOUT_IN_PROGRESS)
    assert "paused by its owner" in row.detail
    assert service.decisions(room) == []

    await room.cluster.kubectl("-n", room.namespace, "rollout", "resume", "deployment/app")

    await service.until_reason(room, "app", Reason.RIGHT_SIZED, timeout_s=20)


async def test_a_mark_on_the_live_pod_protects_its_workload(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["protected"]
    row = await service.until_reason(room, "app", Reason.PROTECTED)
    (pod,) = await room.pods()

    assert row.detail == f"pod {pod['metadata']['name']}: karpenter.sh/do-not-disrupt=true"
    assert service.decisions(room) == []


async def test_boards_that_a_limit_range_gave_are_held_and_reported_but_no_template_is_changed_for_them(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["limit-default"]
    row = await service.until_reason(room, "app", Reason.LIMIT_RANGE)
    (pod,) = await room.pods()
    given = pod["spec"]["containers"][1]["resources"]["limits"]

    assert given == {DEFAULT_RESOURCE: "1"}
    assert (row.held, row.verdict) == (2, "under-used")
    assert row.detail == "the template states 1, live pods hold 2: a LimitRange default may add the rest"
    assert service.decisions(room) == []


async def test_a_rollout_that_is_stuck_half_way_is_left_to_its_owner(
    cluster: Cluster, service: LiveService, room: Room
) -> None:
    await room.add_nodes(boards=4)
    await play(room, room.deployment("app", boards=2), load=half_used(room))
    await cluster.apply([room.deployment("app", boards=3)])  # fits beside the old pod on no node

    row = await service.until_reason(room, "app", Reason.NOT_READY, timeout_s=40)
    await service.pass_cycles(3)

    assert (row.units, row.verdict) == (2, "unknown")
    assert "is pending: 0/" in row.detail
    assert service.decisions(room) == []
