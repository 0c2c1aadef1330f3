import pytest
import yaml
from build import NOW_MS, Spec, boards, burst, cluster, node, policy, waiting

from autoscaler.decide import plan
from autoscaler.model.cluster import Autoscaler, Run
from autoscaler.model.snapshot import Snapshot
from autoscaler.ui.patch_view import patch_view

GPU = "nvidia.com/gpu"
HALF_USED = Spec(gpus=2, seen=(boards(0.0, 0.2),))


def shown(snapshot: Snapshot) -> str:
    return patch_view(plan(snapshot, policy(), NOW_MS))


def test_a_size_is_a_patch_of_one_container_whose_requests_equal_its_limits() -> None:
    text = shown(cluster(HALF_USED))
    container = {"name": "main", "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}

    assert text.startswith("---\n# Deployment team/web: boards per pod 2 -> 1; needs at most ")
    assert yaml.safe_load(text) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def test_a_cron_jobs_size_is_in_its_job_template() -> None:
    known = {"replicas": 1, "completed_runs": 3, "runs": (Run(NOW_MS - 9, "succeeded", 1_000),)}
    spec = Spec(
        kind="CronJob",
        group="batch",
        gpus=2,
        seen=(boards(0.2, 0.0),),
        annotations={"gpu-autoscaler.io/allowed-gpus": "1,2"},
        workload=known,
        rollout={"updated": 0, "total": 0},
    )
    (document,) = yaml.safe_load_all(shown(cluster(spec)))

    assert (document["apiVersion"], document["kind"]) == ("batch/v1", "CronJob")
    (container,) = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {GPU: "1"}


def test_replicas_are_patched_as_replicas_and_each_change_is_a_document() -> None:
    many = Spec("many", seen=(boards(0.05),) * 3, labels={"gpu-autoscaler.io/role": "serving"})
    documents = list(yaml.safe_load_all(shown(cluster(HALF_USED, many))))

    assert [document["metadata"]["name"] for document in documents] == ["web", "many"]
    assert list(documents[1]["spec"]) == ["replicas"]
    assert documents[1]["spec"]["replicas"] < 3


def test_a_lower_minimum_is_a_patch_of_the_autoscaler() -> None:
    quiet = Spec(seen=(boards(0.05),) * 3, annotations={"gpu-autoscaler.io/min-replicas": "1"})
    row = Autoscaler("team", "hpa", "Deployment", "web", 3, 9, uid="u")
    rules = policy(methods={"autoscalerBounds": "agreed"})
    text = patch_view(plan(cluster(quiet, autoscalers=(row,)), rules, NOW_MS))

    assert yaml.safe_load(text) == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa", "namespace": "team"},
        "spec": {"minReplicas": 2},
    }
    assert "minReplicas of HorizontalPodAutoscaler hpa 3 -> 2" in text


def test_a_job_is_patched_by_its_parallelism() -> None:
    quiet = (boards(0.0),) * 3
    floor = {"gpu-autoscaler.io/min-replicas": "1"}
    job = Spec("queue", kind="Job", group="batch", seen=quiet, annotations=floor)
    (document,) = yaml.safe_load_all(shown(cluster(job)))

    assert (document["apiVersion"], document["kind"]) == ("batch/v1", "Job")
    assert document["spec"] == {"parallelism": 2}


def test_an_eviction_is_no_patch_and_says_so() -> None:
    text = shown(cluster(burst(), waiting(), nodes=(node(gpus=1),)))

    assert yaml.safe_load(text) is None
    assert text.splitlines()[1] == "# not a patch: only gpu-autoscaler apply or the service does this"


def test_nothing_to_change_is_said() -> None:
    assert shown(cluster(Spec(seen=(boards(0.9),)))) == "# nothing to change\n"


@pytest.mark.parametrize("name", ["web\nspec: {replicas: 0}", "web\u2028x"])
def test_a_hostile_name_adds_no_line(name: str) -> None:
    text = shown(cluster(HALF_USED.but(name=name)))

    assert [line for line in text.splitlines() if line.startswith("spec: {replicas")] == []
    assert yaml.safe_load(text)["metadata"]["name"] == name
