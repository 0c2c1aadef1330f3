from typing import Any

import pytest

from devcluster.demo.deeds import deeds_of

pytestmark = pytest.mark.unit


def write(
    resource: str = "deployments", *, namespace: str = "ml", code: int = 200, query: str = "", **target: str
) -> dict[str, Any]:
    return {
        "verb": "patch",
        "requestURI": f"/x{query}",
        "objectRef": {"resource": resource, "namespace": namespace, "name": "app"} | target,
        "responseStatus": {"code": code},
    }


def test_its_own_lease_and_ledger_are_not_strange() -> None:
    own = [write(kind, namespace="gpu-autoscaler") for kind in ("leases", "configmaps", "events")]
    found = deeds_of(own, "gpu-autoscaler")

    assert (len(found.all), found.strange, found.acts) == (3, (), 0)


@pytest.mark.parametrize("kind", ["leases", "configmaps", "nodes", "resourcequotas"])
def test_any_other_kind_or_place_is_strange(kind: str) -> None:
    assert deeds_of([write(kind)], "gpu-autoscaler").strange == (f"patch {kind} ml/app 200",)


def test_a_change_that_was_refused_is_among_all_writes() -> None:
    assert deeds_of([write(code=403)], "gpu-autoscaler").all == ("patch deployments ml/app 403",)


@pytest.mark.parametrize(
    ("event", "acts"),
    [
        (write(), 1),
        (write(subresource="scale"), 1),
        (write("pods", subresource="status"), 1),
        (write("pods", subresource="eviction", code=201), 1),
        (write("pods", subresource="eviction", code=429), 0),
        (write(code=409), 0),
        (write(query="?dryRun=All"), 0),
        (write("nodes"), 0),
    ],
)
def test_an_act_is_an_accepted_change_of_a_workload_or_pod(event: dict[str, Any], acts: int) -> None:
    found = deeds_of([event], "gpu-autoscaler")

    assert found.acts == acts


def test_evictions_are_told_by_the_pods_name_and_only_where_accepted() -> None:
    events = [
        write("pods", subresource="eviction", name="a", code=201),
        write("pods", subresource="eviction", name="b", code=429),
        write("pods", subresource="eviction", name="c", code=201, query="?dryRun=All"),
        write("pods", subresource="status", name="d"),
    ]

    assert deeds_of(events, "gpu-autoscaler").evicted == (("ml", "a"),)
