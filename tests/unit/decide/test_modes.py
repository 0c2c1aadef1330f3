"""What may be done: by kind of action, by namespace, and never more than an owner lets be done."""

from typing import Any

import pytest
from build import NOW_MS, Spec, boards, burst, cluster, node, policy, waiting

from autoscaler.decide import plan
from autoscaler.model.cluster import NamespaceRow
from autoscaler.model.plan import Plan
from autoscaler.model.policy_sections import Modes

MODE = "gpu-autoscaler.io/mode"
HALF_USED = Spec(gpus=2, seen=(boards(0.0, 0.2),))


def outcome(made: Plan) -> str:
    """The mode in which the one change is planned, observe where it is not."""
    if not made.actions:
        return "observe"
    (action,) = made.actions
    return "recommend" if "ModeRecommend" in action.held_by else "apply"


@pytest.mark.parametrize(
    ("modes", "found"),
    [
        ({"default": "apply"}, "apply"),
        ({"default": "apply", "namespaces": {"team": "observe"}}, "observe"),
        ({"default": "recommend", "namespaces": {"team": "apply"}}, "apply"),
        ({"default": "recommend", "namespaces": {"other": "apply"}}, "recommend"),
        ({"default": "observe", "rightSize": "apply"}, "apply"),
        ({"rightSize": "apply", "namespaces": {"team": "recommend"}}, "recommend"),
        ({"rightSize": "recommend", "namespaces": {"team": "apply"}}, "recommend"),
        ({"rightSize": "observe", "namespaces": {"team": "apply"}}, "observe"),
    ],
)
def test_a_namespace_has_its_own_default_and_a_kind_of_action_does_the_less_of_both(
    modes: dict[str, Any], found: str
) -> None:
    assert outcome(plan(cluster(HALF_USED), policy(modes=modes), NOW_MS)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("apply", "apply"),
        (" Recommend ", "recommend"),
        ("observe", "observe"),
        ("off", "observe"),
        ("", "observe"),
    ],
)
def test_an_owner_lets_less_be_done_wherever_he_says_so(text: str, found: str) -> None:
    rules, said = policy(modes={"default": "apply"}), {MODE: text}
    for spec, tables in (
        (HALF_USED.but(annotations=said), {}),
        (HALF_USED.but(labels=said), {}),
        (HALF_USED.but(pod={"annotations": said}), {}),
        (HALF_USED, {"namespaces": (NamespaceRow("team", annotations=said),)}),
    ):
        assert outcome(plan(cluster(spec, **tables), rules, NOW_MS)) == found


def test_an_owner_never_lets_more_be_done_than_policy() -> None:
    said = HALF_USED.but(annotations={MODE: "apply"})

    assert outcome(plan(cluster(said), policy(modes={"default": "recommend"}), NOW_MS)) == "recommend"
    assert outcome(plan(cluster(said), policy(modes={"default": "observe"}), NOW_MS)) == "observe"


def test_the_strictest_of_several_statements_holds() -> None:
    spec = HALF_USED.but(annotations={MODE: "apply"}, pod={"annotations": {MODE: "recommend"}})

    assert outcome(plan(cluster(spec), policy(modes={"default": "apply"}), NOW_MS)) == "recommend"


def test_a_refusal_by_mode_says_who_stated_it() -> None:
    apply, observe = policy(modes={"default": "apply"}), policy(modes={"default": "observe"})
    by_owner, *_ = plan(cluster(HALF_USED.but(annotations={MODE: "observe"})), apply, NOW_MS).refusals
    by_policy, *_ = plan(cluster(HALF_USED), observe, NOW_MS).refusals

    assert by_owner.evidence == "gpu-autoscaler.io/mode=observe: nothing is planned"
    assert by_policy.evidence == "right-size is in mode observe: nothing is planned"
    assert by_policy.remedy == "set the mode of right-size to recommend"


@pytest.mark.parametrize(
    ("modes", "victim", "found"),
    [
        ({"default": "apply"}, {}, "apply"),
        ({"default": "apply", "namespaces": {"research": "recommend"}}, {}, "recommend"),
        ({"default": "apply", "namespaces": {"research": "observe"}}, {}, "observe"),
        ({"default": "apply", "namespaces": {"team": "observe"}}, {}, "observe"),
        ({"default": "apply", "namespaces": {"team": "recommend"}}, {}, "recommend"),
        ({"default": "apply"}, {MODE: "recommend"}, "recommend"),
        ({"default": "apply"}, {MODE: "observe"}, "observe"),
    ],
)
def test_room_is_made_as_both_namespaces_and_the_victims_owner_let_it(
    modes: dict[str, Any], victim: dict[str, str], found: str
) -> None:
    asking = cluster(burst(annotations=victim), waiting(namespace="research"), nodes=(node(gpus=1),))

    assert outcome(plan(asking, policy(modes=modes), NOW_MS)) == found


def test_whether_anything_may_be_changed_and_of_what_kind() -> None:
    ours, theirs = Modes(namespaces={"a": "apply"}), Modes(right_size="recommend", namespaces={"a": "apply"})

    assert (Modes().acting, ours.acting, theirs.acting) == (False, True, True)
    assert (Modes().applies("idle"), ours.applies("idle")) == (False, True)
    assert (theirs.applies("right-size"), theirs.applies("idle")) == (False, True)
    assert Modes(idle="apply").applies("idle")
    assert theirs.in_words == "recommend, namespace a apply"
    assert Modes(right_size="apply").in_words == "recommend, right-size apply"


@pytest.mark.parametrize(
    ("said", "after", "reason"),
    [
        ({}, 1, None),
        ({"gpu-autoscaler.io/min-gpus": "1"}, 1, None),
        ({"gpu-autoscaler.io/min-gpus": "2"}, 2, None),
        ({"gpu-autoscaler.io/min-gpus": "4"}, None, "LadderEnd"),
        ({"gpu-autoscaler.io/min-gpus": "some"}, None, "NeedsConsent"),
    ],
)
def test_an_owner_states_the_least_boards_of_a_pod(
    said: dict[str, str], after: int | None, reason: str | None
) -> None:
    spec = Spec(gpus=4, seen=(boards(0.2, 0.0, 0.0, 0.0),), annotations=said)
    made = plan(cluster(spec), policy(), NOW_MS)

    assert [action.after for action in made.actions] == ([after] if after else [])
    assert (made.rows[0].reason if reason else None) == reason
