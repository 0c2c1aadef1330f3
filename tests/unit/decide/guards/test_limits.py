"""The seed's quota of 8 boards, its limit range of 4, and the arithmetic of a surge."""

import pytest
from build import GPU, Spec, boards, cluster, judge, node, rescale, resize
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.decide.guards.limit_range import broken_bound, guard_limit_range
from autoscaler.decide.guards.limits import guard_quota, quota_charge
from autoscaler.decide.guards.successor import guard_placement
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Effect, Tally
from autoscaler.model.cluster import Limit, LimitRangeRow, Quota
from autoscaler.model.shapes import ContainerShape
from autoscaler.model.snapshot import Snapshot

KEY = f"requests.{GPU}"


def quota(boards: int, most: int = 8, **changes: object) -> Quota:
    fields = {"namespace": "team", "name": "gpu-quota", "hard": {KEY: most}, "used": {KEY: boards}}
    return Quota(**{**fields, **changes})  # type: ignore[arg-type]


def ask(change: Proposal, *quotas: Quota, taken: int = 0, **spec: object) -> Ruling:
    found = Spec(**{"gpus": 2, "seen": (boards(0.5, 0.0),), **spec})  # type: ignore[arg-type]
    world, judged = judge(cluster(found, quotas=quotas))
    return guard_quota(world, judged, change, Tally.of(world).after(Effect("team", quota={KEY: taken})))


@pytest.mark.parametrize(
    ("used", "replicas", "rollout", "reason"),
    [
        (7, 1, {}, None),
        (8, 1, {}, "QuotaShort"),
        (8, 1, {"max_surge": "0", "max_unavailable": "1"}, None),
        (8, 1, {"recreate": True}, None),
        (6, 4, {"max_surge": "50%"}, None),
        (7, 4, {"max_surge": "50%"}, "QuotaShort"),
        (4, 4, {"max_surge": "100%"}, None),
        (5, 4, {"max_surge": "200%"}, "QuotaShort"),
        (9, 1, {"recreate": True}, "QuotaShort"),
    ],
)
def test_used_and_surge_stay_within_the_quota_of_eight(
    used: int, replicas: int, rollout: dict[str, object], reason: str | None
) -> None:
    seen = (boards(0.5, 0.0),) * replicas

    assert reason == ask(resize(2, 1), quota(used), seen=seen, rollout=rollout).reason


def test_what_the_plan_has_used_already_counts() -> None:
    assert ask(resize(2, 1), quota(6), taken=1).reason is None
    assert ask(resize(2, 1), quota(6), taken=2).reason == "QuotaShort"


@pytest.mark.parametrize(
    ("hard", "reason"),
    [
        ({f"limits.{GPU}": 0}, None),
        ({GPU: 0}, None),
        ({"pods": 0}, "QuotaShort"),
        ({"count/pods": 0}, "QuotaShort"),
        ({"cpu": 0}, "QuotaShort"),
        ({"requests.cpu": 0}, "QuotaShort"),
        ({"limits.cpu": 0}, None),
        ({"requests.memory": 0}, None),
        ({"count/secrets": 0}, None),
    ],
)
def test_only_keys_that_the_api_server_counts_count(hard: dict[str, int], reason: str | None) -> None:
    assert reason == ask(resize(2, 1), quota(0, hard=hard, used=dict.fromkeys(hard, 0))).reason


def test_a_stateful_set_replaces_in_place_and_a_scale_in_makes_no_pod() -> None:
    assert ask(resize(2, 1), quota(8), kind="StatefulSet").reason is None
    assert ask(rescale(2, 1), quota(9)).reason is None
    assert ask(rescale(2, 1), quota(9)).detail == "no pod to admit"
    assert ask(resize(2, 1)).detail == "no quota in the namespace"
    assert ask(resize(2, 1), quota(9, namespace="lab")).detail == "no quota in the namespace"


def test_the_answer_shows_the_sum() -> None:
    assert ask(resize(2, 1), quota(6)).detail == "the rollout fits: 6 + 1 of 8"
    assert f"quota gpu-quota: {KEY} 8 used + 1 for the surge > 8" == ask(resize(2, 1), quota(8)).detail


def test_a_surge_pod_is_charged_with_requests_and_native_limits() -> None:
    container = {"limits": {GPU: 2, "memory": 5}, "requests": {GPU: 2, "memory": 5, "hugepages-2Mi": 3}}
    init = ContainerShape("init", "init", limits={"cpu": 99})
    main = ContainerShape("main", **container)  # type: ignore[arg-type]
    _, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),), shape={"containers": (init, main)})))

    assert quota_charge(judged, resize(2, 1)) == {
        "pods": 1,
        "count/pods": 1,
        KEY: 1,
        "requests.memory": 5,
        "memory": 5,
        "requests.hugepages-2Mi": 3,
        "hugepages-2Mi": 3,
        "requests.cpu": 99,
        "cpu": 99,
        "limits.memory": 5,
    }
    assert quota_charge(judged, rescale(2, 1)) == {}


def admitted(**amounts: int) -> Snapshot:
    """A template that states no CPU, and its pod, to which a LimitRange has given more."""
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), container={"requests": {GPU: 2}, "limits": {GPU: 2}})
    snapshot = cluster(spec, nodes=(node(gpus=8, allocatable={"cpu": 6000, GPU: 8, "pods": 9}),))
    live = replace(snapshot.shapes[0], demand={**snapshot.shapes[0].demand, **amounts})
    pods = tuple(replace(pod, shape=1) for pod in snapshot.pods)
    return replace(snapshot, shapes=(*snapshot.shapes, live), pods=pods)


@pytest.mark.parametrize(("cpu", "reason"), [(3000, None), (3001, "QuotaShort")])
def test_what_admission_gives_to_pods_is_charged_for_their_successors(cpu: int, reason: str | None) -> None:
    tight = Quota("team", "q", hard={"requests.cpu": 6000}, used={"requests.cpu": 3000})
    world, judged = judge(replace(admitted(cpu=cpu), quotas=(tight,)))

    assert reason == guard_quota(world, judged, resize(2, 1), Tally.of(world)).reason


@pytest.mark.parametrize(("cpu", "reason"), [(3000, None), (3001, "NoSurge")])
def test_what_admission_gives_to_pods_is_placed_with_their_successors(cpu: int, reason: str | None) -> None:
    world, judged = judge(admitted(cpu=cpu))

    assert reason == guard_placement(world, judged, resize(2, 1), Tally.of(world)).reason


def hold(change: Proposal, *limits: Limit, namespace: str = "team", **spec: object) -> Ruling:
    row = LimitRangeRow(namespace, "gpu-limits", limits)
    found = Spec(**{"gpus": 8, "seen": (boards(*[0.0] * 8),), **spec})  # type: ignore[arg-type]
    world, judged = judge(cluster(found, limit_ranges=(row,)))
    return guard_limit_range(world, judged, change, Tally.of(world))


@pytest.mark.parametrize(
    ("after", "limit", "reason"),
    [
        (4, Limit("Container", {GPU: 4}, {GPU: 1}), None),
        (5, Limit("Container", {GPU: 4}), "LimitRange"),
        (1, Limit("Container", minimum={GPU: 2}), "LimitRange"),
        (5, Limit("Pod", {GPU: 4}), "LimitRange"),
        (1, Limit("Pod", minimum={GPU: 2}), "LimitRange"),
        (5, Limit("PersistentVolumeClaim", {GPU: 4}), None),
        (1, Limit("Container", {"cpu": 999}), "LimitRange"),
        (1, Limit("Container", minimum={"cpu": 1001}), "LimitRange"),
        (1, Limit("Container", minimum={"memory": 1}), "LimitRange"),
        (1, Limit("Container", minimum={"memory": 1}, default_request={"memory": 1}), None),
        (1, Limit("Container", {"memory": 4}), "LimitRange"),
        (1, Limit("Container", {"memory": 4}, default={"memory": 4}), None),
        (1, Limit("Container", {"cpu": 4000}, default={"cpu": 900}), None),
        (1, Limit("Pod", {"memory": 4}), "LimitRange"),
        (1, Limit("Container", ratio_milli={GPU: 1000}), None),
        (1, Limit("Container", ratio_milli={GPU: 999}), "LimitRange"),
        (1, Limit("Container", default={"cpu": 1500}, ratio_milli={"cpu": 1500}), None),
        (1, Limit("Container", default={"cpu": 1501}, ratio_milli={"cpu": 1500}), "LimitRange"),
        (1, Limit("Container", ratio_milli={"cpu": 9000}), "LimitRange"),
        (1, Limit("Container", ratio_milli={"memory": 9000}), "LimitRange"),
    ],
)
def test_the_successor_lies_within_the_limit_range(after: int, limit: Limit, reason: str | None) -> None:
    assert reason == hold(resize(8, after), limit).reason


def test_a_pod_limit_is_for_all_containers_that_run_together() -> None:
    side = ContainerShape("side", "sidecar", requests={"cpu": 700}, limits={"cpu": 700})
    init = ContainerShape("init", "init", requests={"cpu": 9000}, limits={"cpu": 9000})
    main = ContainerShape("main", requests={"cpu": 500, GPU: 8}, limits={"cpu": 500, GPU: 8})
    three = {"containers": (init, side, main)}

    assert hold(resize(8, 1), Limit("Pod", {"cpu": 1200}), shape=three).reason is None
    assert hold(resize(8, 1), Limit("Pod", {"cpu": 1199}), shape=three).reason == "LimitRange"
    assert hold(resize(8, 1), Limit("Container", {"cpu": 8999}), shape=three).reason == "LimitRange"


def test_a_default_that_gives_accelerators_to_a_container_beside_refuses() -> None:
    """A maximum alone is stored as the default too, so a sidecar that states nothing would get all of it."""
    side = ContainerShape("side", "sidecar", requests={"cpu": 700}, limits={"cpu": 700})
    main = ContainerShape("main", requests={"cpu": 500, GPU: 8}, limits={"cpu": 500, GPU: 8})
    two = {"containers": (main, side)}
    given = hold(resize(8, 1), Limit("Container", {GPU: 8}, default={GPU: 8}), shape=two)
    other = hold(resize(8, 1), Limit("Container", {GPU: 8}, default={"cpu": 8, GPU: 0}), shape=two)

    assert given.detail == f"a default would give 8 {GPU} to container side"
    assert (given.reason, other.reason) == ("LimitRange", None)


def test_other_namespaces_and_scale_ins_are_not_limited() -> None:
    limit = Limit("Container", {GPU: 1})

    assert hold(resize(8, 4), limit, namespace="lab").reason is None
    assert hold(rescale(2, 1), limit).reason is None
    assert hold(resize(8, 4), limit, namespace="lab").detail == "no limit range"
    assert hold(resize(8, 4)).detail == "4 is within 1 limit ranges"


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 4))
def test_a_fuller_quota_never_allows_more(used: int, hard: int, taken: int) -> None:
    passed = ask(resize(2, 1), quota(used, hard), taken=taken).reason is None

    assert passed == (used + taken + 1 <= hard)
    assert passed or ask(resize(2, 1), quota(used + 1, hard), taken=taken).reason


@pytest.mark.parametrize(
    ("key", "reason"), [("requests.cpu", None), ("limits.cpu", None), ("limits.memory", "QuotaShort")]
)
def test_what_a_pod_does_not_ask_for_is_not_held_against_it(key: str, reason: str | None) -> None:
    over = Quota("team", "q", {key: 1}, {key: 2})
    limits = {"limits": {GPU: 2, "cpu": 0, "memory": 1}}

    assert reason == ask(resize(2, 1), over, cpu_milli=0, container=limits).reason


def test_a_default_request_of_boards_without_a_limit_is_no_valid_pod() -> None:
    uneven = ContainerShape("aside", requests={GPU: 1})

    assert broken_bound([], [uneven]) == f"1 {GPU} requested by aside have no equal limit"
    assert broken_bound([], [ContainerShape("aside", requests={GPU: 1}, limits={GPU: 1})]) == ""
