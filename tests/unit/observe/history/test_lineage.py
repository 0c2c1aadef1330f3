import pytest

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.history.lineage import Lineage


def ref(kind: str, name: str, *, namespace: str = "ml") -> WorkloadRef:
    group = "batch" if kind in {"Job", "CronJob"} else "apps"
    return WorkloadRef(group, kind, namespace, name)


WEB = ref("Deployment", "web")
DB = ref("StatefulSet", "db")
TRAIN = ref("Job", "train")
NIGHTLY = ref("CronJob", "nightly")
WORKLOADS = (WEB, DB, TRAIN, NIGHTLY, ref("Deployment", "web", namespace="other"))


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        ("web-7d9f8c6b5d-x2x4q", WEB),  # a ReplicaSet that still exists
        ("web-6c54bd5869-m8k2p", WEB),  # one that was cleaned up: a hash as the controller writes it
        ("db-0", DB),
        ("db-12", DB),
        ("train-bcdfg", TRAIN),
        ("train-3-bcdfg", TRAIN),  # an indexed Job
        ("nightly-28999123-x2x4q", NIGHTLY),
        ("nightly-28999123-0-x2x4q", NIGHTLY),
        ("nightly-29000000-x2x4q", NIGHTLY),
    ],
)
def test_names_that_controllers_give_tell_the_workload(pod: str, owner: WorkloadRef) -> None:
    lineage = Lineage.of(WORKLOADS, makers=[("web-7d9f8c6b5d", WEB), ("nightly-28999123", NIGHTLY)])

    assert owner == lineage.of_pod("ml", pod)


@pytest.mark.parametrize(
    "pod",
    [
        "",
        "web",
        "web-",
        "web-7d9f8c6b5d",  # the ReplicaSet itself
        "web-7d9f8c6b5d-x2x4",  # four characters
        "web-7d9f8c6b5d-x2x4e",  # a vowel is never drawn
        "web-7d9fac6b5d-x2x4q",  # nor in a hash
        "web-7d9f8c6b5d5-x2x4qq",
        "WEB-7d9f8c6b5d-x2x4q",
        "db-01",
        "db--1",
        "db-x",
        "db-٣",  # a digit, but not one that a controller writes
        "nightly-2899912-x2x4q",
        "nightly-289991234-x2x4q",
        "train-worker-0",  # an operator's naming
        "webx2x4q",
    ],
)
def test_any_other_name_is_nobodys(pod: str) -> None:
    assert Lineage.of(WORKLOADS).of_pod("ml", pod) == "unknown"


def test_a_name_counts_in_its_own_namespace_only() -> None:
    lineage = Lineage.of(WORKLOADS)

    assert ref("Deployment", "web", namespace="other") == lineage.of_pod("other", "web-6c54bd5869-m8k2p")
    assert lineage.of_pod("third", "web-6c54bd5869-m8k2p") == "unknown"


def test_a_name_that_fits_two_workloads_is_nobodys() -> None:
    job = ref("Job", "web-6c54bd5869")

    assert Lineage.of([*WORKLOADS, job]).of_pod("ml", "web-6c54bd5869-m8k2p") == "ambiguous"


def test_a_stateful_set_whose_name_ends_like_a_replica_set_is_told_apart() -> None:
    lineage = Lineage.of([WEB, ref("StatefulSet", "web-6c54bd5869")])

    assert ref("StatefulSet", "web-6c54bd5869") == lineage.of_pod("ml", "web-6c54bd5869-0")
    assert lineage.of_pod("ml", "web-6c54bd5869-m8k2p") == WEB


def test_replica_sets_below_other_kinds_are_found_by_their_names_only() -> None:
    rollout = WorkloadRef("argoproj.io", "Rollout", "ml", "api")
    lineage = Lineage.of([rollout], makers=[("api-7d9f8c6b5d", rollout)])

    assert rollout == lineage.of_pod("ml", "api-7d9f8c6b5d-x2x4q")
    assert lineage.of_pod("ml", "api-6c54bd5869-x2x4q") == "unknown"


def test_a_replica_set_of_its_own_is_a_workload() -> None:
    bare = ref("ReplicaSet", "cache")

    assert bare == Lineage.of([bare]).of_pod("ml", "cache-x2x4q")


def test_a_name_cut_at_the_limit_is_found_by_what_is_left_of_it() -> None:
    long = ref("Job", "t" * 60)
    lineage = Lineage.of([long])

    assert long == lineage.of_pod("ml", "t" * 58 + "x2x4q")


def test_two_makers_that_are_cut_to_the_same_stem_are_nobodys() -> None:
    jobs = [ref("Job", "t" * 59), ref("Job", "t" * 60)]

    assert Lineage.of(jobs).of_pod("ml", "t" * 58 + "x2x4q") == "ambiguous"


def test_kinds_of_other_groups_give_no_names() -> None:
    strange = WorkloadRef("example.com", "Deployment", "ml", "web")

    assert Lineage.of([strange]).of_pod("ml", "web-6c54bd5869-m8k2p") == "unknown"
