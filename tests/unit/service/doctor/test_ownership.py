from build import Spec, boards, cluster

from autoscaler.model.cluster import Autoscaler, FieldOwner
from autoscaler.model.snapshot import Snapshot
from tests.unit.service.doctor.examined import finding, seen


def spec(name: str, *owners: FieldOwner, **labels: str) -> Spec:
    return Spec(name=name, seen=(boards(0.5),), labels=labels, workload={"field_owners": owners})


def found_in(snapshot: Snapshot) -> str:
    return finding(seen(snapshot=snapshot), "D7").found


def test_owners_are_counted_by_field() -> None:
    scaler = Autoscaler("team", "web", "Deployment", "web")
    keda = Autoscaler("team", "keda-hpa-llm", "Deployment", "llm")
    snapshot = cluster(
        spec("web"),
        spec("llm"),
        spec("argo", FieldOwner("argocd-controller", replicas=True, template_resources=True)),
        spec("mine", FieldOwner("kubectl-client-side-apply", replicas=True, template_resources=True)),
        spec("vpa", FieldOwner("vpa-updater", template_resources=True)),
        autoscalers=(scaler, keda),
    )

    assert found_in(snapshot) == (
        "4 of 5 workloads with accelerators have another owner: Argo CD (replicas) 1, Argo CD (resources) 1, "
        "HPA (replicas) 1, KEDA (replicas) 1, VPA (resources) 1; e.g. team/argo, team/llm, team/vpa and 1 more"
    )


def test_who_deploys_and_who_admits_is_told_by_labels() -> None:
    flux, kueue = "kustomize.toolkit.fluxcd.io/name", "kueue.x-k8s.io/queue-name"
    snapshot = cluster(spec("a", **{flux: "apps"}), spec("b", **{kueue: "gpus"}))

    assert "Flux (deploys it) 1, Kueue (admission) 1" in found_in(snapshot)


def test_a_manager_of_the_policys_list_that_has_no_common_name_keeps_its_own() -> None:
    owner = FieldOwner("horizontal-pod-autoscaler", replicas=True)

    assert "HPA (replicas) 1" in found_in(cluster(spec("a", owner)))


def test_people_and_their_tools_are_nobody_else() -> None:
    found = finding(seen(snapshot=cluster(spec("a", FieldOwner("helm", replicas=True)))), "D7")

    assert (found.state, found.found) == (
        "ok",
        "nobody but their own authors, of 1 workloads with accelerators",
    )


def test_without_workloads_there_is_nothing_to_own() -> None:
    assert finding(seen(snapshot=cluster()), "D7").state == "skipped"
