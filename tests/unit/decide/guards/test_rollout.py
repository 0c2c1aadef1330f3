import pytest
from build import Spec, boards, cluster, judge, rescale, resize
from hypothesis import given
from hypothesis import strategies as st
from law import scaled
from msgspec.structs import replace

from autoscaler.decide.guards.rollout import (
    guard_peers_ready,
    guard_rollout,
    rounded,
    surge_and_unavailable,
    surge_of,
    unavailable_of,
)
from autoscaler.decide.proposal import Proposal
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Rollout

THREE = (boards(0.5),) * 3


@pytest.mark.parametrize(
    ("value", "replicas", "up", "down"),
    [
        ("0", 4, 0, 0),
        ("3", 4, 3, 3),
        ("25%", 4, 1, 1),
        ("25%", 1, 1, 0),
        ("25%", 3, 1, 0),
        ("29%", 100, 29, 29),
        ("33%", 10, 4, 3),
        ("100%", 7, 7, 7),
        ("200%", 2, 4, 4),
        ("0%", 9, 0, 0),
        ("50%", 0, 0, 0),
    ],
)
def test_an_int_or_percent_is_rounded_as_the_api_has_it(
    value: str, replicas: int, up: int, down: int
) -> None:
    assert (up, down) == (rounded(value, replicas, up=True), rounded(value, replicas, up=False))


@pytest.mark.parametrize(
    ("rollout", "replicas", "moves"),
    [
        (Rollout(), 1, (1, 0)),
        (Rollout(), 4, (1, 1)),
        (Rollout(), 10, (3, 2)),
        (Rollout("0", "0"), 5, (0, 1)),
        (Rollout("0", "25%"), 2, (0, 1)),
        (Rollout(recreate=True), 3, (0, 3)),
    ],
)
def test_surge_and_unavailable_are_what_the_deployment_controller_makes_of_them(
    rollout: Rollout, replicas: int, moves: tuple[int, int]
) -> None:
    assert moves == surge_and_unavailable(rollout, replicas)


@pytest.mark.parametrize(
    ("spec", "change", "moves"),
    [
        (Spec(seen=THREE), rescale(3, 1), (0, 2)),
        (Spec(seen=THREE), resize(2, 1), (1, 0)),
        (Spec(seen=THREE, rollout={"max_surge": "200%"}), resize(2, 1), (3, 0)),
        (Spec(seen=THREE, rollout={"max_unavailable": "9"}), resize(2, 1), (1, 3)),
        (Spec(seen=THREE, kind="StatefulSet"), resize(2, 1), (0, 1)),
        (Spec(seen=THREE, kind="StatefulSet", rollout={"max_unavailable": "0"}), resize(2, 1), (0, 1)),
        (Spec(seen=THREE, kind="StatefulSet", rollout={"max_unavailable": "2"}), resize(2, 1), (0, 2)),
        (Spec(seen=THREE, kind="StatefulSet", rollout={"max_unavailable": "34%"}), resize(2, 1), (0, 2)),
        (Spec(seen=THREE, kind="StatefulSet", rollout={"max_unavailable": "9"}), resize(2, 1), (0, 3)),
        (Spec(seen=THREE, kind="StatefulSet", rollout={"max_unavailable": "9"}), rescale(3, 2), (0, 1)),
    ],
)
def test_pods_made_before_and_taken_before(spec: Spec, change: Proposal, moves: tuple[int, int]) -> None:
    _, judged = judge(cluster(spec))

    assert moves == (surge_of(judged, change), unavailable_of(judged, change))


def rolls(change: Proposal, **spec: object) -> str | None:
    world, judged = judge(cluster(Spec(**{"seen": THREE, **spec})))  # type: ignore[arg-type]
    return guard_rollout(world, judged, change, Tally.of(world)).reason


@pytest.mark.parametrize(
    ("rollout", "template", "scale"),
    [
        ({}, None, None),
        ({"paused": True}, "RolloutInProgress", "RolloutInProgress"),
        ({"observed": False}, "RolloutInProgress", "RolloutInProgress"),
        ({"updated": 2}, "RolloutInProgress", "RolloutInProgress"),
        ({"total": 4}, "RolloutInProgress", "RolloutInProgress"),
        ({"on_delete": True}, "NoLever", None),
        ({"partition": 1}, "RolloutInProgress", None),
    ],
)
def test_one_change_at_a_time(rollout: dict[str, object], template: str | None, scale: str | None) -> None:
    assert (template, scale) == (rolls(resize(2, 1), rollout=rollout), rolls(rescale(3, 2), rollout=rollout))


def test_two_live_revisions_or_sizes_are_a_rollout() -> None:

    snapshot = cluster(Spec(seen=THREE), Spec("bigger", gpus=2, seen=(boards(0.5, 0.5),)))
    first, *rest = snapshot.pods
    for changed in (replace(first, revision="r2"), replace(first, shape=1)):
        world, judged = judge(replace(snapshot, pods=(changed, *rest)))
        for change in (resize(2, 1), rescale(3, 2)):
            assert guard_rollout(world, judged, change, Tally.of(world)).reason == "RolloutInProgress"


@pytest.mark.parametrize(
    ("pod", "replicas", "reason"),
    [
        ({}, 3, None),
        ({"ready": False}, 3, "NotReady"),
        ({"deleting": True}, 3, "NotReady"),
        ({"phase": "Pending"}, 3, "NotReady"),
        ({"phase": "Unknown"}, 3, "NotReady"),
        ({"phase": "Failed"}, 3, "NotReady"),
        ({}, 4, "NotReady"),
        ({}, 2, "NotReady"),
    ],
)
def test_every_replica_is_ready_and_their_number_is_the_stated_one(
    pod: dict[str, object], replicas: int, reason: str | None
) -> None:
    world, judged = judge(cluster(Spec(seen=THREE, pod=pod, replicas=replicas)))

    assert reason == guard_peers_ready(world, judged, resize(2, 1), Tally.of(world)).reason


@pytest.mark.parametrize(
    ("pod", "told"),
    [({"ready": False}, "pod web-0 is not ready"), ({"phase": "Pending"}, "pod web-0 is pending")],
)
def test_who_is_not_ready_is_named_with_its_state(pod: dict[str, object], told: str) -> None:
    world, judged = judge(cluster(Spec(seen=THREE, pod=pod)))

    assert guard_peers_ready(world, judged, resize(2, 1), Tally.of(world)).detail == told


def test_a_stated_unavailable_counts_where_nothing_surges() -> None:
    assert surge_and_unavailable(Rollout(max_surge="0", max_unavailable="2"), 4) == (0, 2)


@given(st.sampled_from(["0", "1", "7", "1%", "25%", "33%", "99%", "100%", "150%"]), st.integers(0, 10**12))
def test_rounding_is_exact(value: str, replicas: int) -> None:
    exact = scaled(value, replicas)

    assert (
        exact - 1
        < rounded(value, replicas, up=False)
        <= exact
        <= rounded(value, replicas, up=True)
        < exact + 1
    )


@given(st.integers(0, 100), st.integers(0, 150), st.integers(1, 500))
def test_a_rollout_always_can_move(surge: int, away: int, replicas: int) -> None:
    assert sum(surge_and_unavailable(Rollout(f"{surge}%", f"{away}%"), replicas)) >= 1
