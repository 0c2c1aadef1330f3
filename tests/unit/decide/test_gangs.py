import pytest
from build import Spec, boards, cluster, judge

from autoscaler.decide.gangs import gang_of

TWO = Spec(seen=(boards(0.5),) * 2)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (Spec(), ""),
        (TWO, ""),
        (Spec(kind="PyTorchJob", group="kubeflow.org"), "kind PyTorchJob"),
        (Spec(labels={"leaderworkerset.sigs.k8s.io/name": "x"}), "label leaderworkerset.sigs.k8s.io/name"),
        (Spec(kind="Job", group="batch"), ""),
        (TWO.but(kind="Job", group="batch"), "a Job of 2 pods at once"),
        (TWO.but(container={"image": "trainer:1"}), "training (image of container main): its replicas are part of the run"),
        (TWO.but(container={"parallelism": ("WORLD_SIZE",)}), "its pods may work as one (WORLD_SIZE)"),
        (TWO.but(container={"parallelism": ("--tensor-parallel-size",)}), ""),
        (Spec(container={"parallelism": ("WORLD_SIZE",)}), ""),
    ],
)  # fmt: skip
def test_who_works_as_one(spec: Spec, why: str) -> None:
    _, judged = judge(cluster(spec))

    assert why == gang_of(judged)


def test_the_stated_count_tells_even_where_one_pod_lives() -> None:
    _, judged = judge(cluster(Spec(replicas=4, container={"parallelism": ("WORLD_SIZE",)})))

    assert gang_of(judged) != ""
