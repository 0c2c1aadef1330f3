"""Where an autoscaler keeps replicas at its minimum, fewer replicas are a lower minimum, if policy lets it be lowered."""

from typing import Any

import pytest
from build import Spec, boards, cluster, judge, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide import plan
from autoscaler.decide.actions import change_of
from autoscaler.decide.guards.ownership import guard_field_owner
from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.decide.methods.bounds import sole_autoscaler, through_bounds
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Autoscaler
from autoscaler.model.plan import ExplainRow, ThroughRef

QUIET = Spec(seen=(boards(0.1),) * 3, annotations={MIN_REPLICAS: "1"})
AGREED = {"autoscalerBounds": "agreed"}
NOW_MS = 1_800_000_000_000


def hpa(minimum: int = 3, **more: Any) -> Autoscaler:
    name = more.pop("name", "hpa")
    fields = {"uid": f"uid-{name}", "resource_version": "7", "maximum": 9}
    return Autoscaler("team", name, "Deployment", "web", minimum, **(fields | more))


def row(spec: Spec, *rows: Autoscaler, **methods: Any) -> ExplainRow:
    planned = plan(cluster(spec, autoscalers=rows), policy(methods=AGREED | methods), NOW_MS)
    return planned.rows[0]


def test_the_action_is_of_the_workload_and_writes_its_autoscaler() -> None:
    action = row(QUIET, hpa()).action

    assert action is not None
    assert (action.method, action.lever, action.before, action.after) == ("scale-in", "bounds", 3, 2)
    assert action.through == ThroughRef("hpa", "uid-hpa", "HorizontalPodAutoscaler")
    assert action.written[0].group == "autoscaling"
    assert (str(action.written[0]), action.written[1]) == ("team/hpa", "uid-hpa")
    assert (action.target.name, action.resource_version) == ("web", "7")
    assert action.saved_milli_boards == 1000
    assert action.because.endswith("; HorizontalPodAutoscaler hpa keeps no fewer than 3")
    assert action.preconditions == (
        "uid of HorizontalPodAutoscaler team/hpa is uid-hpa",
        "resourceVersion of HorizontalPodAutoscaler team/hpa is 7",
        "minReplicas of HorizontalPodAutoscaler team/hpa is 3",
        "controller.kubernetes.io/pod-deletion-cost is lowest on web-0",
    )
    assert [pod.name for pod in action.leaving] == ["web-0"]


def test_an_autoscaler_has_its_calm_time_on_top_of_the_deadline() -> None:
    quick, slow = (row(QUIET, hpa(calm_ms=calm)).action for calm in (0, 3_600_000))

    assert quick is not None
    assert slow is not None
    assert slow.ready_within_ms - quick.ready_within_ms == 3_600_000


def test_a_stateful_set_s_pods_go_by_their_ordinals() -> None:
    spec = QUIET.but(kind="StatefulSet", seen=(boards(0.1), boards(0.1), boards(0.0)))
    action = row(spec, Autoscaler("team", "hpa", "StatefulSet", "web", 3, 9, uid="u")).action

    assert action is not None
    assert (action.lever, action.leaving) == ("bounds", ())


@pytest.mark.parametrize(
    ("bounds", "annotations", "lowered"),
    [
        ("never", {MIN_REPLICAS: "1"}, False),
        ("agreed", {MIN_REPLICAS: "1"}, True),
        ("agreed", {}, False),
        ("always", {}, True),
    ],
)
def test_a_minimum_is_lowered_only_as_policy_and_owner_let_it(
    bounds: str, annotations: dict[str, str], *, lowered: bool
) -> None:
    found = row(QUIET.but(annotations=annotations), hpa(), autoscalerBounds=bounds)

    assert (found.action is not None) == lowered
    assert lowered or found.reason == "OtherOwner"


@pytest.mark.parametrize("minimum", [1, 2, 4])
def test_only_the_minimum_that_holds_the_replicas_is_lowered(minimum: int) -> None:
    assert (row(QUIET, hpa(minimum)).action, row(QUIET, hpa(minimum)).reason) == (None, "OtherOwner")


def test_two_autoscalers_of_one_target_are_left_to_fight_alone() -> None:
    two = hpa(), hpa(name="other")
    world, judged = judge(cluster(QUIET, autoscalers=two), policy(methods=AGREED))

    assert sole_autoscaler(world, judged.case) is None
    assert row(QUIET, *two).reason == "OtherOwner"
    with pytest.raises(ValueError, match="no autoscaler holds"):
        change_of(world, judged, Proposal("scale-in", "ScaledIn", "bounds", 3, 2, 1, ""))  # type: ignore[arg-type]


def test_what_is_idle_goes_to_one_since_an_autoscaler_takes_no_less() -> None:
    idle = Spec(seen=(boards(0.0),) * 2, annotations={MIN_REPLICAS: "0"})
    action = row(idle, hpa(2)).action

    assert action is not None
    assert (action.method, action.lever, action.before, action.after) == ("idle", "bounds", 2, 1)
    assert action.saved_milli_boards == 1000
    assert row(Spec(seen=(boards(0.0),), annotations={MIN_REPLICAS: "0"}), hpa(1)).reason == "OtherOwner"


def test_a_size_is_never_a_bound() -> None:
    world, judged = judge(cluster(QUIET, autoscalers=(hpa(),)), policy(methods=AGREED))

    assert through_bounds(world, judged, resize(2, 1)) == resize(2, 1)


@pytest.mark.parametrize(
    ("more", "detail", "remedy"),
    [
        ({}, "nobody else owns minReplicas of HorizontalPodAutoscaler hpa", ""),
        ({"deleting": True}, "HorizontalPodAutoscaler hpa is being deleted", ""),
        (
            {"controller": "ScaledObject queue"},
            "ScaledObject queue keeps HorizontalPodAutoscaler hpa",
            "lower the minimum of ScaledObject queue to 2",
        ),
        (
            {"minimum_owners": ("helm", "argocd-controller")},
            "argocd-controller owns minReplicas of HorizontalPodAutoscaler hpa",
            """change it where argocd-controller has it from: kubectl -n team patch hpa hpa --type=merge -p '{"spec":{"minReplicas":2}}'""",
        ),
        (
            {"blind": "ScalingActive is False: FailedGetResourceMetric"},
            "HorizontalPodAutoscaler hpa would not take replicas: ScalingActive is False: FailedGetResourceMetric",
            "",
        ),
        (
            {"scales_in": False},
            "HorizontalPodAutoscaler hpa would not take replicas: its policy for going down is Disabled",
            "",
        ),
    ],
)  # fmt: skip
def test_a_minimum_that_is_another_s_or_would_not_be_used_is_left(
    more: dict[str, Any], detail: str, remedy: str
) -> None:
    world, judged = judge(cluster(QUIET, autoscalers=(hpa(**more),)), policy(methods=AGREED))
    proposal = through_bounds(world, judged, rescale(3, 2))
    found = guard_field_owner(world, judged, proposal, Tally.of(world))

    assert proposal.lever == "bounds"
    assert found == Ruling("owner", detail, None if not more else "OtherOwner", remedy)  # type: ignore[arg-type]


@given(st.integers(1, 5), st.sampled_from(["never", "agreed", "always"]), st.integers(0, 5))
def test_a_bound_is_never_under_the_owner_s_floor_nor_raised(minimum: int, bounds: str, floor: int) -> None:
    spec = Spec(seen=(boards(0.0),) * 3, annotations={MIN_REPLICAS: str(floor)})
    action = row(spec, hpa(minimum), autoscalerBounds=bounds).action

    if action is not None:
        assert action.lever == "bounds"
        assert bounds != "never"
        assert max(1, floor) <= action.after < action.before == minimum == 3
