import pytest
from build import Spec, boards, cluster, judge, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.ownership import guard_field_owner
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Autoscaler, FieldOwner
from autoscaler.model.reasons import Reason


def ask(
    change: Proposal, *owners: FieldOwner, autoscalers: tuple[Autoscaler, ...] = (), **sections: object
) -> Ruling:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),) * 2, workload={"field_owners": owners})
    world, judged = judge(cluster(spec, autoscalers=autoscalers), policy(**sections))  # type: ignore[arg-type]
    return guard_field_owner(world, judged, change, Tally.of(world))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (("team", "Deployment", "web"), "OtherOwner"),
        (("lab", "Deployment", "web"), None),
        (("team", "StatefulSet", "web"), None),
        (("team", "Deployment", "other"), None),
    ],
)
def test_an_autoscaler_owns_the_replicas_of_its_target_and_with_them_the_size(
    target: tuple[str, str, str], reason: str | None
) -> None:
    namespace, kind, name = target
    hpa = (Autoscaler(namespace, "hpa", kind, name, 1, 9),)

    assert reason == ask(rescale(2, 1), autoscalers=hpa).reason
    assert reason == ask(resize(2, 1), autoscalers=hpa).reason


def test_the_remedy_is_the_command_that_lowers_the_autoscaler_s_bound() -> None:
    found = ask(rescale(2, 1), autoscalers=(Autoscaler("team", "hpa", "Deployment", "web", 2, 9),))
    to_none = ask(rescale(2, 0), autoscalers=(Autoscaler("team", "h p", "Deployment", "web", 2, 9),))

    assert found.detail == "HorizontalPodAutoscaler hpa owns replicas, at least 2"
    assert found.remedy == """kubectl -n team patch hpa hpa --type=merge -p '{"spec":{"minReplicas":1}}'"""
    assert (
        to_none.remedy == """kubectl -n team patch hpa 'h p' --type=merge -p '{"spec":{"minReplicas":1}}'"""
    )


def test_an_autoscaler_that_may_go_lower_is_asked_why_it_does_not() -> None:
    found = ask(rescale(2, 1), autoscalers=(Autoscaler("team", "hpa", "Deployment", "web", 1, 9),))

    assert found.detail == "HorizontalPodAutoscaler hpa owns replicas, 1 to 9"
    assert found.remedy == "look at hpa's metric: it may have 1 replicas, and keeps 2"


def test_another_owner_s_remedy_is_the_exact_patch() -> None:
    flux = FieldOwner("flux-controller", replicas=True, template_resources=True)
    amount = '{"nvidia.com/gpu":"1"}'
    container = f'{{"name":"main","resources":{{"limits":{amount},"requests":{amount}}}}}'

    assert ask(rescale(2, 1), flux).remedy == (
        'change it where flux-controller has it from: {"spec":{"replicas":1}}'
    )
    assert ask(resize(2, 1), flux).remedy == (
        f'change it where flux-controller has it from: {{"spec":{{"template":{{"spec":{{"containers":[{container}]}}}}}}}}'
    )


def test_a_size_that_an_autoscaler_answers_to_is_changed_by_hand() -> None:
    found = ask(resize(2, 1), autoscalers=(Autoscaler("team", "hpa", "Deployment", "web", 2, 9),))

    assert (
        found.detail == "HorizontalPodAutoscaler hpa owns replicas: size and replicas would chase each other"
    )
    assert found.remedy.startswith('change the size, together with hpa\'s target and bounds: {"spec":')


@pytest.mark.parametrize(
    ("manager", "scale", "template"),
    [
        ("argocd-controller", True, True),
        ("flux", True, True),
        ("keda-operator", True, True),
        ("kubectl-client-side-apply", False, False),
        ("helm", False, False),
        ("Terraform", False, False),
        ("gpu-autoscaler", False, False),
    ],
)
def test_managers_on_the_list_own_what_they_wrote(manager: str, scale: bool, template: bool) -> None:
    assert scale == (ask(rescale(2, 1), FieldOwner(manager, replicas=True)).reason == "OtherOwner")
    assert template == (
        ask(resize(2, 1), FieldOwner(manager, template_resources=True)).reason == "OtherOwner"
    )
    assert ask(resize(2, 1), FieldOwner(manager, replicas=True)).reason is None
    assert ask(rescale(2, 1), FieldOwner(manager, template_resources=True)).reason is None


def test_the_field_that_is_owned_is_told() -> None:
    argo = FieldOwner("argocd-controller", replicas=True, template_resources=True)
    stopped = Proposal("deactivate", Reason.RELEASED, "deactivate", 1, 0, 2, "a test says so")

    assert ask(rescale(2, 1), argo).detail == "argocd-controller owns replicas"
    assert ask(resize(2, 1), argo).detail == "argocd-controller owns the template's resources"
    assert ask(rescale(2, 1)).detail == "nobody else owns replicas"
    assert ask(resize(2, 1)).detail == "nobody else owns the template's resources"
    assert ask(stopped, argo) == Ruling("owner", "spec.active of its Workload is left to others by Kueue")


@given(
    st.lists(
        st.builds(FieldOwner, st.sampled_from(["argocd-x", "kubectl", ""]), st.booleans(), st.booleans())
    )
)
def test_one_more_owner_never_frees_a_field(owners: list[FieldOwner]) -> None:
    for change in (rescale(2, 1), resize(2, 1)):
        refused = ask(change, *owners).reason is not None
        assert ask(change, *owners, FieldOwner("argocd-y", True, True)).reason
        assert refused or ask(change, *owners[:-1]).reason is None
