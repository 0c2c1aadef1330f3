"""Objects decode to the fields we read, whatever Go left out or wrote as null."""

import json
from typing import Any

import msgspec
import pytest

from autoscaler.kube import wire
from autoscaler.kube.kinds import KINDS

pytestmark = pytest.mark.unit

NULL_POD = {
    "metadata": {
        "name": "p",
        "creationTimestamp": None,
        "labels": None,
        "annotations": None,
        "ownerReferences": None,
    },
    "spec": {
        "containers": None,
        "initContainers": None,
        "volumes": None,
        "tolerations": None,
        "affinity": None,
        "nodeSelector": None,
        "overhead": None,
        "schedulingGates": None,
        "resourceClaims": None,
        "topologySpreadConstraints": None,
    },
    "status": {"conditions": None, "containerStatuses": None, "startTime": None},
}
TRAINER = {
    "metadata": {"name": "t-0", "namespace": "ml", "uid": "u", "resourceVersion": "7", "generation": 1},
    "spec": {
        "nodeName": "n1",
        "priority": 1000,
        "preemptionPolicy": "Never",
        "nodeSelector": {"gpu-type": "a100"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]
            },
        },
        "containers": [
            {
                "name": "main",
                "image": "i",
                "args": ["--tensor-parallel-size", "2"],
                "tty": True,
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "resources": {
                    "limits": {"nvidia.com/gpu": "2"},
                    "requests": {"nvidia.com/gpu": "2"},
                    "claims": None,
                },
                "ports": [{"containerPort": 8000}],
            }
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "e", "emptyDir": {}},
            {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "c", "configMap": {"name": "c"}},
        ],
        "resourceClaims": [{"name": "gpu"}],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 3,
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            }
        ],
    },
}


def decode(struct: type[Any], value: object) -> Any:
    return msgspec.json.decode(json.dumps(value).encode(), type=struct)


def test_nulls_of_go_are_absent_values() -> None:
    pod = decode(wire.Pod, NULL_POD)

    assert pod.spec.containers is None
    assert pod.status.conditions is None
    assert pod.metadata.creation_timestamp is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_kind_decodes_from_metadata_alone_as_bookmarks_have_it(kind: Any) -> None:
    line = b'{"type":"BOOKMARK","object":{"kind":"%b","metadata":{"resourceVersion":"9","creationTimestamp":null}}}'
    event = kind.event_decoder.decode(line % kind.name.encode())

    assert event.object.metadata.resource_version == "9"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_an_object_without_metadata_is_refused(kind: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(kind.struct, {})


def test_a_pod_keeps_what_placement_and_sizing_need() -> None:
    pod = decode(wire.Pod, TRAINER)
    main = pod.spec.containers[0]
    term = pod.spec.affinity.node_affinity.required.node_selector_terms[0]

    assert main.resources.limits == {"nvidia.com/gpu": "2"}
    assert [(env.name, env.value) for env in wire.environment(main)] == [("A", "1"), ("S", "")]
    assert main.tty
    assert main.ports[0].container_port == 8000
    assert (term.match_expressions[0].key, term.match_expressions[0].values) == ("zone", ["a"])
    assert pod.spec.affinity.pod_affinity is None
    assert pod.spec.affinity.pod_anti_affinity.required[0].topology_key == "kubernetes.io/hostname"
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert pod.spec.resource_claims
    assert pod.status.container_statuses[0].last_state.terminated.reason == "OOMKilled"


def test_volumes_that_bind_a_pod_are_told_apart() -> None:
    claim, empty, host, config = decode(wire.Pod, TRAINER).spec.volumes

    assert claim.persistent_volume_claim.claim_name == "data"
    assert empty.empty_dir is not None
    assert host.host_path is not None
    assert (config.persistent_volume_claim, config.empty_dir, config.host_path) == (None, None, None)


def test_last_applied_configuration_never_reaches_a_struct() -> None:
    meta = decode(wire.ObjectMeta, {"annotations": {wire.LAST_APPLIED_ANNOTATION: "{}", "a": "b"}})

    assert meta.annotations == {"a": "b"}


def field_set(**spec: object) -> dict[str, object]:
    return {"f:metadata": {"f:labels": {}}, "f:spec": spec}


TEMPLATE_RESOURCES: dict[str, Any] = {
    "f:spec": {
        "f:containers": {
            'k:{"name":"main"}': {".": {}, "f:resources": {"f:limits": {"f:nvidia.com/gpu": {}}}}
        }
    }
}


@pytest.mark.parametrize(
    ("spec", "owned"),
    [
        ({"f:replicas": {}}, {"owns_replicas"}),
        ({"f:template": TEMPLATE_RESOURCES}, {"owns_resources"}),
        ({"f:suspend": {}, "f:parallelism": {}}, {"owns_suspend", "owns_parallelism"}),
        ({"f:jobTemplate": {"f:spec": {"f:template": TEMPLATE_RESOURCES}}}, {"owns_resources"}),
    ],
)
def test_managed_fields_become_the_levers_each_manager_owns(spec: dict[str, object], owned: set[str]) -> None:
    entry = {
        "manager": "m",
        "operation": "Apply",
        "subresource": "scale",
        "fieldsV1": field_set(**spec),
        "time": "t",
    }
    meta = decode(wire.WorkloadMeta, {"managedFields": [entry]})

    assert meta.managed_fields is None
    assert len(meta.field_owners) == 1
    owner = meta.field_owners[0]
    assert (owner.manager, owner.operation, owner.subresource) == ("m", "Apply", "scale")
    assert {name for name in owner.__struct_fields__ if getattr(owner, name) is True} == owned


def test_managers_that_own_no_lever_are_dropped() -> None:
    fields = [
        {"manager": "a", "fieldsV1": field_set(**{"f:selector": {}})},
        {"manager": "b", "fieldsV1": {"f:status": {"f:replicas": {}}}},
        {"manager": "c"},
        {
            "manager": "d",
            "fieldsV1": field_set(**{"f:template": {"f:spec": {"f:containers": {"k": {"f:resources": {}}}}}}),
        },
    ]

    assert decode(wire.WorkloadMeta, {"managedFields": fields}).field_owners == ()


@pytest.mark.parametrize(("value", "expected"), [(1, 1), ("25%", "25%"), (None, None)])
def test_surge_is_a_number_or_a_share(value: object, expected: object) -> None:
    strategy = decode(wire.UpdateStrategy, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": value}})

    assert strategy.rolling_update.max_surge == expected


def test_a_budget_without_selector_differs_from_one_that_selects_everything() -> None:
    absent = decode(wire.PodDisruptionBudget, {"metadata": {}, "spec": {"selector": None}})
    empty = decode(wire.PodDisruptionBudget, {"metadata": {}, "spec": {"selector": {}}})

    assert absent.spec.selector is None
    assert empty.spec.selector is not None


def test_a_cron_job_carries_the_template_of_its_jobs() -> None:
    value = {
        "metadata": {"name": "c"},
        "spec": {
            "schedule": "0 2 * * *",
            "jobTemplate": {"spec": {"backoffLimit": 0, "template": {"spec": TRAINER["spec"]}}},
        },
        "status": {"lastScheduleTime": None},
    }
    cron_job = decode(wire.CronJob, value)

    assert cron_job.spec.job_template.spec.backoff_limit == 0
    assert cron_job.spec.job_template.spec.template.spec.containers[0].name == "main"


def test_a_claim_keeps_requests_devices_and_consumers_and_a_pod_its_claims_names() -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "g", "adminAccess": None, "shareID": "s"}
    value = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k", "count": 2}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "w", "uid": "u"}],
        },
    }
    claim = decode(wire.ResourceClaim, value)
    pod = decode(
        wire.Pod,
        {
            "metadata": {"name": "w"},
            "status": {
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "w-gpu-1"}],
                "extendedResourceClaimStatus": {
                    "requestMappings": [{"containerName": "m", "resourceName": "a/b", "requestName": "r"}],
                    "resourceClaimName": "w-x",
                },
            },
        },
    )

    assert claim.spec.devices.requests[0].exactly.count == 2
    assert claim.status.allocation.devices.results[0].share_id == "s"
    assert [(c.name, c.uid) for c in claim.status.reserved_for] == [("w", "u")]
    assert pod.status.resource_claim_statuses[0].resource_claim_name == "w-gpu-1"
    assert pod.status.extended_resource_claim_status.request_mappings[0].resource_name == "a/b"


def test_a_kind_is_read_at_the_best_version_that_a_server_has() -> None:
    claim = KINDS["ResourceClaim"]
    older = {f"resource.k8s.io/{version}/resourceclaims" for version in ("v1beta1", "v1beta2")}

    assert claim.served_by(older | {"resource.k8s.io/v1/resourceclaims"}) is claim
    assert claim.served_by(older).path == "/apis/resource.k8s.io/v1beta2/resourceclaims"
    assert claim.served_by({"resource.k8s.io/v1alpha3/resourceclaims"}) is claim


def test_the_kinds_are_twenty_three_at_distinct_paths() -> None:
    assert len(KINDS) == 23
    assert len({kind.path for kind in KINDS.values()}) == 23
    assert KINDS["Pod"].path == "/api/v1/pods"
    assert KINDS["HorizontalPodAutoscaler"].path == "/apis/autoscaling/v2/horizontalpodautoscalers"
