"""Kueue's objects, as its API server shows them, become rows; what cannot be read is named."""

from typing import Any

import msgspec
import pytest
from build import GPU

from autoscaler.kube import wire
from autoscaler.model.kueue import (
    ClusterQueueRow,
    CohortRow,
    FlavorQuota,
    FlavorUse,
    KueueWorkload,
    LocalQueueRow,
)
from autoscaler.observe.kueue import cluster_queue_row, cohort_row, local_queue_row, workload_row

AT = "2027-01-15T08:00:00Z"
AT_MS = 1_800_000_000_000


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": AT, **more}


def pod_set(count: int, *, init: dict[str, str] | None = None, **resources: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": resources}]}
    if init is not None:
        spec["initContainers"] = [{"name": "first", "resources": {"requests": init}}]
    return {"name": "main", "count": count, "template": {"spec": spec}}


def workload(**parts: Any) -> KueueWorkload:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "uid-job", "controller": True}
    metadata = {
        "name": "job-web-1",
        "namespace": "team",
        "uid": "uid-row",
        "resourceVersion": "12",
        "ownerReferences": parts.pop("owners", [owner]),
    }
    return workload_row(msgspec.convert({"metadata": metadata, **parts}, wire.KueueWorkload))


def test_an_admitted_workload_tells_where_and_how_much() -> None:
    row = workload(
        spec={"queueName": "main", "active": True, "podSets": [pod_set(2, limits={GPU: "4"})]},
        status={
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
            "admission": {
                "clusterQueue": "gpus",
                "podSetAssignments": [
                    {"flavors": {GPU: "a100"}, "resourceUsage": {GPU: "8"}},
                    {"flavors": {GPU: "a100"}, "resourceUsage": {GPU: "1", "cpu": "500m"}},
                ],
            },
        },
    )

    assert row == KueueWorkload(
        namespace="team",
        name="job-web-1",
        uid="uid-row",
        resource_version="12",
        controller="uid-job",
        owners=("uid-job",),
        queue="main",
        active=True,
        reserved=True,
        reserved_ms=AT_MS,
        admitted=True,
        cluster_queue="gpus",
        asks={GPU: 8},
        uses=(FlavorUse("", "cpu", 500), FlavorUse("a100", GPU, 9)),
    )


@pytest.mark.parametrize(
    ("active", "conditions", "expected"),
    [
        (None, [], {"active": True}),
        (False, [condition("Evicted", reason="Deactivated")], {"active": False, "evicted": "Deactivated"}),
        (True, [condition("Evicted", "False", reason="QuotaReserved")], {"evicted": ""}),
        (True, [condition("Finished")], {"finished": True}),
        (
            True,
            [condition("QuotaReserved", "False", message="couldn't assign flavors to pod set main")],
            {
                "reserved": False,
                "reserved_ms": -1,
                "waits_because": "couldn't assign flavors to pod set main",
            },
        ),
    ],
)
def test_its_state_is_what_its_conditions_say(
    active: bool | None, conditions: list[Any], expected: dict[str, Any]
) -> None:
    row = workload(spec={"active": active}, status={"conditions": conditions})

    assert expected == {name: getattr(row, name) for name in expected}


def test_pods_of_a_group_own_it_together() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": f"uid-{n}"} for n in ("b", "a")]
    row = workload(owners=owners)

    assert (row.controller, row.owners) == ("", ("uid-a", "uid-b"))


@pytest.mark.parametrize(
    ("sets", "asks"),
    [
        ([pod_set(3, requests={GPU: "1"}), pod_set(1, limits={GPU: "2"})], {GPU: 5}),
        ([pod_set(2, requests={GPU: "1"}, limits={GPU: "9", "cpu": "1"})], {GPU: 2, "cpu": 2000}),
        ([pod_set(1, requests={GPU: "1"}, init={GPU: "4"})], {GPU: 4}),
        ([pod_set(1, requests={GPU: "junk"})], {}),
        ([{"name": "main", "count": 1}], {}),
        ([{"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "main"}]}}}], {}),
        (None, {}),
    ],
)
def test_it_asks_for_what_all_its_pods_ask_for(sets: Any, asks: dict[str, int]) -> None:
    assert asks == workload(spec={"podSets": sets}).asks


def groups(*resources: dict[str, str]) -> list[dict[str, Any]]:
    return [{"coveredResources": [GPU], "flavors": [{"name": "a100", "resources": list(resources)}]}]


def test_a_queue_has_quotas_limits_and_what_is_reserved() -> None:
    item = {
        "metadata": {"name": "gpus"},
        "spec": {
            "cohortName": "all",
            "stopPolicy": "Hold",
            "resourceGroups": groups(
                {"name": GPU, "nominalQuota": "8", "borrowingLimit": "2", "lendingLimit": "0"}
            ),
        },
        "status": {"flavorsReservation": [{"name": "a100", "resources": [{"name": GPU, "total": "5"}]}]},
    }

    assert cluster_queue_row(msgspec.convert(item, wire.ClusterQueue)) == ClusterQueueRow(
        name="gpus",
        cohort="all",
        stop="Hold",
        quotas=(FlavorQuota("a100", GPU, 8, 2, 0),),
        uses=(FlavorUse("a100", GPU, 5),),
    )


@pytest.mark.parametrize("field", ["nominalQuota", "borrowingLimit", "lendingLimit"])
def test_an_amount_that_cannot_be_read_is_named_and_its_quota_is_not_guessed(field: str) -> None:
    item = {
        "metadata": {"name": "gpus"},
        "spec": {"resourceGroups": groups({"name": GPU, "nominalQuota": "8"} | {field: "junk"})},
    }
    queue = cluster_queue_row(msgspec.convert(item, wire.ClusterQueue))
    cohort = cohort_row(msgspec.convert(item, wire.Cohort))

    assert queue.quotas == cohort.quotas == ()
    assert queue.unreadable == cohort.unreadable
    assert queue.unreadable[0].startswith(f"a100 {GPU}")


def test_a_bare_queue_and_a_bare_cohort_are_rows_too() -> None:
    bare = {"metadata": {"name": "x"}}

    assert cluster_queue_row(msgspec.convert(bare, wire.ClusterQueue)) == ClusterQueueRow("x")
    assert cohort_row(msgspec.convert(bare, wire.Cohort)) == CohortRow("x")


def test_a_door_leads_to_its_queue_unless_it_is_shut() -> None:
    def door(stop: str | None) -> LocalQueueRow:
        spec = {"clusterQueue": "gpus", "stopPolicy": stop}
        item = {"metadata": {"name": "main", "namespace": "team"}, "spec": spec}
        return local_queue_row(msgspec.convert(item, wire.LocalQueue))

    assert door(None) == door("None") == LocalQueueRow("team", "main", "gpus", "")
    assert door("HoldAndDrain").stop == "HoldAndDrain"


def test_a_cohort_has_a_parent_and_quotas_of_its_own() -> None:
    item = {
        "metadata": {"name": "team"},
        "spec": {"parentName": "root", "resourceGroups": groups({"name": GPU, "nominalQuota": "3"})},
    }

    assert cohort_row(msgspec.convert(item, wire.Cohort)) == CohortRow(
        "team", "root", (FlavorQuota("a100", GPU, 3),)
    )
