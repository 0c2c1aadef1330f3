"""Shapes: what is read of a specification, and what cannot be read is named."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import GPU

from autoscaler.kube import wire
from autoscaler.model.policy import Resources
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.shapes import Repulsion, Requirement
from autoscaler.observe.parallelism import parallelism_hints
from autoscaler.observe.shapes import ShapeTable, shape_of

pytestmark = pytest.mark.unit


def read(**parts: Any) -> wire.PodSpec:
    return msgspec.json.decode(msgspec.json.encode(parts), type=wire.PodSpec)


def wants(amount: str = "1", **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {GPU: amount}}, **more}


def test_demand_is_the_schedulers() -> None:
    shape = shape_of(
        read(
            containers=[wants("1")],
            initContainers=[wants("4"), wants("2", name="side", restartPolicy="Always")],
            overhead={"cpu": "10m"},
        )
    )

    assert shape.demand == {GPU: 4, "cpu": 10}
    assert [c.role for c in shape.containers] == ["main", "init", "sidecar"]


@pytest.mark.parametrize("amount", ["many", "-1", "1e99", ""])
def test_an_unreadable_quantity_is_a_fault_and_no_error(amount: str) -> None:
    shape = shape_of(read(containers=[wants(amount)]))

    assert shape.demand == {}
    assert len(shape.faults) == 1
    assert GPU in shape.faults[0]


def test_an_unreadable_accelerator_is_still_a_wish_for_one() -> None:
    assert ShapeTable(Resources()).plain_demand(read(containers=[wants("many")])) is None


def test_slices_count_as_accelerators_by_prefix() -> None:
    spec = read(containers=[{"name": "c", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}])

    assert ShapeTable(Resources()).plain_demand(spec) is None


def test_required_node_affinity_is_alternatives_of_requirements() -> None:
    terms = [
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                {"key": "x", "operator": "Exists"},
            ]
        },
        {"matchExpressions": [{"key": "gpu", "operator": "Gt", "values": ["3"]}]},
    ]
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    shape = shape_of(read(containers=[wants()], affinity={"nodeAffinity": node}))

    assert shape.node_terms == (
        (Requirement("zone", "In", ("a", "b")), Requirement("x", "Exists")),
        (Requirement("gpu", "Gt", ("3",)),),
    )
    assert shape.unmodelled == ()


def test_rules_that_are_not_modelled_are_named() -> None:
    hard = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
    shape = shape_of(
        read(
            containers=[wants()],
            affinity={"podAffinity": hard, "podAntiAffinity": hard},
            topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}],
            schedulingGates=[{"name": "kueue.x-k8s.io/admission"}],
        )
    )

    assert shape.unmodelled == (
        "podAffinity",
        "podAntiAffinity",
        "schedulingGates",
        "topologySpreadConstraints",
    )


def test_a_node_may_be_asked_for_by_its_name_beside_its_labels() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    label = {"key": "metadata.name", "operator": "Exists"}
    term = {"matchExpressions": [label], "matchFields": [field]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    shape = shape_of(read(containers=[wants()], affinity={"nodeAffinity": affinity}))

    assert shape.node_terms == (
        (
            Requirement("metadata.name", "Exists"),
            Requirement("metadata.name", "In", ("n",), of_name=True),
        ),
    )
    assert shape.unmodelled == ()


def test_whom_a_pod_keeps_out_is_read_with_its_namespaces() -> None:
    selector = {"matchLabels": {"app": "a"}}
    terms = [
        {"topologyKey": "zone", "labelSelector": selector},
        {"topologyKey": "host", "labelSelector": selector, "namespaces": ["lab"]},
        {"topologyKey": "host", "labelSelector": {}, "namespaceSelector": {}},
        {"topologyKey": "host"},
    ]
    spec = read(containers=[wants()], affinity={"podAntiAffinity": {AFFINITY: terms}})
    a = LabelSelector({"app": "a"})

    assert shape_of(spec).repels == (
        Repulsion("zone", a),
        Repulsion("host", a, ("lab",)),
        Repulsion("host", LabelSelector(), None),
        Repulsion("host", None),
    )


def test_claims_are_told() -> None:
    shape = shape_of(
        read(
            containers=[wants()],
            volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}],
            resourceClaims=[{}],
        )
    )

    assert shape.volume_claims
    assert shape.resource_claims


def test_shapes_no_longer_used_are_forgotten_and_read_again_as_equal() -> None:
    table = ShapeTable(Resources())
    spec = read(containers=[wants()])
    first = table.shape(spec)
    table.retain([])
    second = table.shape(spec)

    assert first == second
    assert table.shape(spec) is second


@pytest.mark.parametrize(
    ("container", "hints"),
    [
        ({"args": ["--tensor-parallel-size", "4"]}, ("--tensor-parallel-size",)),
        ({"args": ["--tensor-parallel-size=4", "--port=80"]}, ("--tensor-parallel-size",)),
        ({"command": ["vllm", "serve", "m", "-tp", "2"]}, ("-tp",)),
        ({"args": ["--num-gpus=2"]}, ("--num-gpus",)),
        ({"args": ["--pipeline_model_parallel_size", "2"]}, ("--pipeline_model_parallel_size",)),
        ({"command": ["torchrun", "--nproc_per_node=4", "t.py"]}, ("--nproc_per_node",)),
        ({"command": ["torchrun", "--nproc-per-node", "gpu"]}, ("--nproc-per-node",)),
        ({"command": ["sh", "-c", "NUM_GPUS=4 python t.py --world-size 4"]}, ("--world-size", "NUM_GPUS")),
        ({"command": ["sh", "-c", "mpirun -np 4 ./a"]}, ("-np",)),
        ({"args": ["trainer.devices=4"]}, ("trainer.devices",)),
        ({"args": ["--num-shard", "2"]}, ("--num-shard",)),
        ({"env": [{"name": "WORLD_SIZE", "value": "8"}]}, ("WORLD_SIZE",)),
        ({"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}]}, ("CUDA_VISIBLE_DEVICES",)),
        ({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, ()),
        ({"env": [{"name": "DATA_PARALLEL_SIZE", "value": "2"}]}, ("DATA_PARALLEL_SIZE",)),
        ({"env": [{"name": "HOME", "value": "/root"}], "args": ["--batch-size=4", "serve", "devices"]}, ()),
        ({"args": ["--tensor-parallel-size=1"]}, ("--tensor-parallel-size",)),
        ({"env": [{"name": "VLLM_ARGS", "value": "--model m --tensor-parallel-size 2"}]}, ("VLLM_ARGS",)),
        ({"env": [{"name": "EXTRA_ARGS", "value": "-tp 4"}]}, ("EXTRA_ARGS",)),
        ({"env": [{"name": "CONFIG", "value": '{"tp_size": 2}'}]}, ("CONFIG",)),
        ({"env": [{"name": "tensorParallelSize", "value": "2"}]}, ("tensorParallelSize",)),
        ({"env": [{"name": "TP", "value": "2"}]}, ("TP",)),
        ({"env": [{"name": "GPU_IDS", "value": "0,1"}]}, ("GPU_IDS",)),
        (
            {"env": [{"name": "MASTER_ADDR", "value": "x"}, {"name": "RANK", "value": "0"}]},
            ("MASTER_ADDR", "RANK"),
        ),
        ({"args": ["--engine-args", '{"tensor_parallel_size": 2}']}, ("tensor_parallel_size",)),
        ({"args": ["sh", "-c", "x '{\\\"tp_size\\\": 2}'"]}, ("tp_size",)),
        ({"args": ["tensorParallelSize=2"]}, ("tensorParallelSize",)),
        ({"args": ["--gpu_ids", "0,1"]}, ("--gpu_ids",)),
        ({"args": ["--device-ids", "0,1"]}, ("--device-ids",)),
        ({"args": ["device=0,1"]}, ("device",)),
        ({"args": ["--device", "0,1"]}, ("--device",)),
        ({"args": ["--device", "cuda"]}, ()),
        ({"args": ["--device=0"]}, ()),
        ({"args": ["--tensor-split", "1,1"]}, ("--tensor-split",)),
        ({"args": ["-ts", "1,1"]}, ("-ts",)),
        ({"args": ["--nnodes=4"]}, ("--nnodes",)),
        ({"args": ["--num_machines", "4"]}, ("--num_machines",)),
        ({"args": ["tp=2"]}, ("tp",)),
        ({"command": ["mpirun", "-n", "4", "python"]}, ("-n",)),
        ({"command": ["horovodrun", "-np", "$N", "python"]}, ("-np",)),
        ({"command": ["head", "-n", "4"]}, ()),
        ({"args": ["-g", "2"]}, ("-g",)),
        ({"command": ["gunicorn", "-g", "1000"]}, ()),
        ({"args": ["--num-worker-gpus", "2"]}, ("--num-worker-gpus",)),
        ({"args": ["--tensor_para_size=2"]}, ("--tensor_para_size",)),
        ({"args": ["--data-parallel-size-local", "2"]}, ("--data-parallel-size-local",)),
        ({"args": ["--instance-group", "count:2"]}, ("--instance-group",)),
        ({"args": ["--sp", "2", "--cp=2"]}, ("--cp", "--sp")),
        ({"args": ["--strategy=ddp"]}, ("--strategy",)),
        ({"args": ["--strategy=greedy"]}, ()),
        ({"args": ["--max-lora-rank", "16"], "env": [{"name": "LORA_RANK", "value": "8"}]}, ()),
        ({"args": ["--config", "/models/tp=x/np-cache", "-sp", "main"]}, ()),
        ({"env": [{"name": "CUDA_DEVICE_ORDER", "value": "PCI_BUS_ID"}]}, ()),
    ],
)
def test_a_device_count_in_the_application_is_hinted(
    container: dict[str, Any], hints: tuple[str, ...]
) -> None:
    assert (
        parallelism_hints(msgspec.json.decode(msgspec.json.encode(container), type=wire.Container)) == hints
    )


@given(st.lists(st.text(max_size=200), max_size=5))
def test_any_argument_text_is_read_without_error(args: list[str]) -> None:
    parallelism_hints(wire.Container(args=args))


@pytest.mark.parametrize(
    ("parts", "live", "template"),
    [
        ({"hostNetwork": True}, ("hostNetwork",), ("hostNetwork",)),
        ({"containers": [wants(ports=[{"hostPort": 80}])]}, ("hostPort",), ("hostPort",)),
        ({"initContainers": [wants(ports=[{"hostPort": 80}])]}, ("hostPort",), ("hostPort",)),
        ({"containers": [wants(ports=[{"containerPort": 80}])]}, (), ()),
        ({"nodeName": "n1"}, (), ("nodeName",)),
        ({"runtimeClassName": "nvidia"}, (), ("runtimeClassName",)),
        ({"runtimeClassName": None, "nodeName": ""}, (), ()),
    ],
)
def test_places_that_are_not_modelled_are_named(
    parts: dict[str, Any], live: tuple[str, ...], template: tuple[str, ...]
) -> None:
    spec = read(**{"containers": [wants()], **parts})

    assert ShapeTable(Resources()).shape(spec).unmodelled == live
    assert ShapeTable(Resources(), templates=True).shape(spec).unmodelled == template


def test_pods_that_differ_in_their_node_only_share_a_shape() -> None:
    table = ShapeTable(Resources())

    assert table.shape(read(containers=[wants()], nodeName="a")) is table.shape(
        read(containers=[wants()], nodeName="b")
    )


def test_variables_that_cannot_be_read_are_a_fault_of_the_shape() -> None:
    spec = msgspec.json.decode(b'{"containers":[{"name":"main","env":[{"name":1}]}]}', type=wire.PodSpec)

    assert [fault[:11] for fault in shape_of(spec).faults] == ["main: env: "]


AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("affinity", "crosses"),
    [
        ({}, False),
        ({"podAffinity": {AFFINITY: [{"topologyKey": "zone"}]}}, False),
        ({"podAffinity": {AFFINITY: [{"topologyKey": "zone", "namespaces": ["lab"]}]}}, True),
        ({"podAntiAffinity": {AFFINITY: [{"topologyKey": "zone", "namespaceSelector": {}}]}}, True),
        ({"podAntiAffinity": {PREFERRED: [{"podAffinityTerm": {"namespaces": ["lab"]}}]}}, True),
        ({"podAntiAffinity": {PREFERRED: [{"podAffinityTerm": {"topologyKey": "zone"}}]}}, False),
    ],
)
def test_terms_that_reach_into_other_namespaces_are_seen(affinity: dict[str, Any], crosses: bool) -> None:
    assert shape_of(read(containers=[wants()], affinity=affinity)).cross_namespace == crosses


def test_a_deadline_is_part_of_the_shape() -> None:
    table = ShapeTable(Resources())
    soon, later, never = (
        table.shape(read(containers=[wants()], **more))
        for more in ({"activeDeadlineSeconds": 1}, {"activeDeadlineSeconds": 2}, {})
    )

    assert (soon.deadline, never.deadline) == (True, False)
    assert soon is later
