"""Devices of resource claims: each is counted once, as the accelerator that it is, and never by counting series."""

from typing import Any

import msgspec
import pytest
from unit.observe.claimed import DRIVER, claim, claimant, device, device_class, resource_slice
from unit.observe.observed import GPU, NOW_MS, deployment, make, node, owner, pod, reading, stores

from autoscaler.decide import plan
from autoscaler.decide.world import World
from autoscaler.kube import wire
from autoscaler.model.policy import Policy, Resources
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.assemble import assemble
from autoscaler.observe.devices import with_devices
from autoscaler.observe.pods import PlainPod, PodEntry
from autoscaler.observe.stores import Stores, StoresView

MIG = "nvidia.com/mig-1g.10gb"
SHARED = "nvidia.com/gpu.shared"


def bare_node(name: str = "node-1", **allocatable: str) -> wire.Node:
    """A node on which no device plugin runs."""
    status = {
        "allocatable": {"cpu": "64", **allocatable},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return make(wire.Node, name, namespace="", status=status)


def boards(count: int) -> list[dict[str, Any]]:
    return [device(f"gpu-{i}", uuid=f"GPU-{i}") for i in range(count)]


def view(*objects: Any) -> StoresView:
    return with_devices(stores(*objects).freeze())


def held(seen: StoresView, name: str) -> dict[str, int]:
    """The demand of a pod, its CPU aside."""
    entry = seen.pods.pods[f"ml/{name}"]
    demand = entry.shape.demand if isinstance(entry, PodEntry) else entry.demand
    return {resource: amount for resource, amount in demand.items() if resource != "cpu"}


def offered(seen: StoresView, name: str = "node-1") -> dict[str, int]:
    return {r: n for r, n in seen.nodes[f"/{name}"].allocatable.items() if r != "cpu"}


def world(*objects: Any) -> World:
    return World(assemble(stores(*objects).freeze(), reading(), now_ms=NOW_MS), Policy(), NOW_MS)


def test_a_pod_without_any_request_holds_the_devices_of_its_claim() -> None:
    seen = view(
        bare_node(),
        resource_slice(*boards(8)),
        claim("c", "gpu-0", "gpu-3", pods=["p"], count=2),
        claimant("p", "c"),
    )

    assert held(seen, "p") == {GPU: 2}
    assert offered(seen) == {GPU: 8}


def test_a_claim_from_a_template_is_found_under_the_name_that_the_status_tells() -> None:
    made = pod("p", gpus=0, spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]})
    made.status.resource_claim_statuses = [wire.ClaimStatus(name="gpu", resource_claim_name="p-gpu-x7")]

    assert held(view(claim("p-gpu-x7", "gpu-0"), made), "p") == {GPU: 1}


def test_an_extended_resource_and_the_claim_made_for_it_count_once() -> None:
    seen = view(
        bare_node(),
        resource_slice(*boards(4)),
        device_class(extended=GPU),
        claim("p-extended-1", "gpu-0", pods=["p"], extended=True),
        claimant("p", gpus=1, backed_by="p-extended-1"),
    )

    assert held(seen, "p") == {GPU: 1}
    assert offered(seen) == {GPU: 4}


def test_they_count_once_while_the_status_does_not_yet_name_the_claim() -> None:
    seen = view(claim("p-extended-1", "gpu-0", pods=["p"], extended=True), pod("p", gpus=1))

    assert held(seen, "p") == {GPU: 1}


def test_a_claim_that_its_pod_does_not_name_was_made_for_the_pods_extended_resource() -> None:
    owned = claim("generated", "gpu-0", owners=[owner("Pod", "p", api="v1", uid="uid-ml-p")])

    assert held(view(owned, pod("p", gpus=1)), "p") == {GPU: 1}


def test_a_claim_from_a_template_is_added_before_the_status_names_it() -> None:
    made = pod("p", gpus=1, spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]})
    given = claim(
        "p-gpu-x7", "gpu-1", pods=["p"], annotations={"resource.kubernetes.io/pod-claim-name": "gpu"}
    )

    assert held(view(given, made), "p") == {GPU: 2}


@pytest.mark.parametrize("claims", [(), (claim("p-extended-1", extended=True),)], ids=["unread", "not given"])
def test_an_extended_resource_counts_by_itself_until_its_claim_has_devices(claims: tuple[Any, ...]) -> None:
    assert held(view(*claims, claimant("p", gpus=2, backed_by="p-extended-1")), "p") == {GPU: 2}


def test_a_claim_beside_an_extended_resource_of_its_own_is_added() -> None:
    seen = view(
        claim("x", "gpu-0", pods=["p"], extended=True),
        claim("c", "gpu-1", pods=["p"]),
        claimant("p", "c", gpus=1, backed_by="x"),
    )

    assert held(seen, "p") == {GPU: 2}


def test_a_class_asked_for_by_its_own_name_is_the_accelerator_that_it_stands_for() -> None:
    wanted = {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "2"}
    spec = {"containers": [{"name": "main", "resources": {"limits": wanted, "requests": wanted}}]}
    waiting = pod("p", gpus=0, spec=spec, node="", phase="Pending")

    assert held(view(device_class(), waiting), "p") == {GPU: 2}


def test_a_waiting_pod_wants_what_its_claim_asks_for() -> None:
    assert held(view(claim("c", count=4), claimant("p", "c", node="")), "p") == {GPU: 4}


def test_of_alternatives_the_first_is_wanted_and_the_one_that_was_given_is_held() -> None:
    choices = [
        {"name": "whole", "deviceClassName": DRIVER, "count": 2},
        {"name": "slice", "deviceClassName": "mig.nvidia.com", "count": 1},
    ]
    requests = [{"name": "gpus", "firstAvailable": choices}]
    mig = device_class(
        "mig.nvidia.com",
        expression=f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'",
    )
    slices = resource_slice(device("mig-0", profile="1g.10gb"))
    waiting = view(mig, slices, claim("c", requests=requests), claimant("p", "c", node=""))
    given = claim("c", "mig-0", requests=requests, result={"request": "gpus/slice"})

    assert held(waiting, "p") == {GPU: 2}
    assert held(view(mig, slices, given, claimant("p", "c")), "p") == {MIG: 1}


def test_a_given_slice_that_no_object_shows_any_longer_is_no_whole_board() -> None:
    mig = device_class("mig.nvidia.com", expression=f"device.driver == '{DRIVER}' && a.type == 'mig'")
    seen = view(mig, claim("c", "mig-0", asks="mig.nvidia.com"), claimant("p", "c"))

    assert held(seen, "p") == {"nvidia.com/mig-any": 1}


def test_access_for_monitoring_holds_nothing() -> None:
    seen = view(
        bare_node(),
        resource_slice(*boards(2)),
        claim("c", "gpu-0", pods=["p"], result={"adminAccess": True}),
        claimant("p", "c"),
    )

    assert isinstance(seen.pods.pods["ml/p"], PlainPod)
    assert offered(seen) == {GPU: 2}


def test_a_pod_whose_claims_are_for_other_devices_is_a_plain_one() -> None:
    nic = claim("c", "nic-0", asks="dranet", driver="dra.net", pods=["p"])
    seen = view(bare_node(), nic, claimant("p", "c"), pod("other", gpus=0))

    assert seen.pods.pods["ml/p"] == PlainPod("node-1", {"cpu": 1000})
    assert seen.pods.taken["node-1"].taken == {"cpu": 2000}
    assert seen.pods.taken["node-1"].pods == 2


def test_a_pod_that_uses_somebody_elses_claim_by_an_old_uid_holds_nothing() -> None:
    stale = claim("p-extended-1", "gpu-0", pods=["p"], extended=True)
    seen = view(stale, pod("p", gpus=3, uid="uid-of-its-successor"))

    assert held(seen, "p") == {GPU: 3}


def test_a_class_names_the_resource_before_the_vendor_does() -> None:
    backed = device_class("fast", extended="gpuconfig.com/gpu")

    assert held(view(backed, claim("c", "gpu-0", asks="fast"), claimant("p", "c")), "p") == {
        "gpuconfig.com/gpu": 1
    }


@pytest.mark.parametrize(
    ("driver", "attributes", "expected"),
    [
        (DRIVER, {"type": "gpu", "profile": "1g.10gb"}, GPU),
        (DRIVER, {"type": "mig", "profile": "1g.10gb"}, MIG),
        (DRIVER, {"type": "mig", "profile": "1g.10gb+me"}, f"{MIG}.me"),
        ("gpu.amd.com", {}, "amd.com/gpu"),
        ("gpu.amd.com", {"partitionProfile": "spx_nps1"}, "amd.com/gpu"),
        ("gpu.amd.com", {"partitionProfile": "cpx_nps4"}, "amd.com/cpx_nps4"),
        ("gpu.intel.com", {}, "gpu.intel.com/xe"),
        ("gaudi.intel.com", {}, "habana.ai/gaudi"),
        ("listed.example.com", {}, "listed.example.com"),
    ],
)
def test_a_device_bears_the_name_that_its_device_plugin_would_give_it(
    driver: str, attributes: dict[str, str], expected: str
) -> None:
    content = {"name": "d", "attributes": {name: {"string": text} for name, text in attributes.items()}}
    filled = Stores(Resources(boards=(*Resources().boards, "listed.example.com")))
    filled.nodes.apply(bare_node())
    filled.resource_slices.apply(resource_slice(content, driver=driver))

    assert offered(with_devices(filled.freeze())) == {expected: 1}


def test_a_class_that_is_all_of_a_driver_names_its_devices_while_nobody_holds_them() -> None:
    example = device_class("gpu.example.com", extended="gpuconfig.com/gpu")
    other = device_class(
        "some", extended=GPU, expression="device.driver == 'gpu.example.com' && device.x == 1"
    )
    slices = resource_slice(*boards(3), driver="gpu.example.com")

    assert offered(view(bare_node(), example, other, slices)) == {"gpuconfig.com/gpu": 3}


def test_v1beta1_reads_like_v1() -> None:
    content = device("gpu-0", uuid="GPU-A")
    old = {"name": content.pop("name"), "basic": content}
    flat = [{"name": "gpus", "deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 2}]
    seen = view(bare_node(), resource_slice(old), claim("c", requests=flat), claimant("p", "c", node=""))

    assert offered(seen) == {GPU: 1}
    assert held(seen, "p") == {GPU: 2}


def test_a_driver_that_several_classes_back_with_other_names_is_not_guessed() -> None:
    one = device_class("gpu.example.com", extended="gpuconfig.com/gpu")
    two = device_class("two", extended=GPU, expression="device.driver == 'gpu.example.com'")

    assert offered(view(bare_node(), one, two, resource_slice(*boards(3), driver="gpu.example.com"))) == {}


def test_a_device_is_named_by_its_driver_when_neither_class_nor_slice_is_read() -> None:
    assert held(view(claim("c", "gpu-0", asks="our-boards"), claimant("p", "c")), "p") == {GPU: 1}


def test_a_pod_that_ended_holds_nothing_and_its_board_is_free_once_the_claim_is() -> None:
    ended = claimant("p", "c", phase="Succeeded")
    found = world(bare_node(), resource_slice(*boards(2)), claim("c"), ended)

    assert found.free["node-1"][GPU] == 2


def test_a_nodes_offer_is_for_that_node_alone() -> None:
    assert offered(view(bare_node(), bare_node("node-2"), resource_slice(*boards(2))), "node-2") == {}


def test_a_device_plugin_and_slices_on_one_node_are_the_same_boards() -> None:
    seen = view(bare_node(**{GPU: "8"}), resource_slice(*boards(6)), claim("c", "gpu-0"), claimant("p", "c"))

    assert offered(seen) == {GPU: 8}


def test_only_the_newest_generation_of_a_pool_counts_and_only_once_it_is_whole() -> None:
    old = resource_slice(*boards(8), name="old", generation=1)
    new = resource_slice(device("gpu-0"), device("gpu-1"), name="new", generation=2)
    half = resource_slice(device("gpu-0"), device("gpu-1"), name="new", generation=2, slices=2)
    holding = (claim("c", "gpu-0", pods=["p"]), claimant("p", "c"))

    assert offered(view(bare_node(), old, new)) == {GPU: 2}
    assert offered(view(bare_node(), old, half)) == {}
    assert offered(view(bare_node(), old, half, *holding)) == {GPU: 1}


def test_a_held_device_exists_when_no_slice_shows_it() -> None:
    seen = view(bare_node(), claim("c", "gpu-7", pods=["p"]), claimant("p", "c"))

    assert offered(seen) == {GPU: 1}


def test_a_board_whose_slice_is_held_is_not_on_offer() -> None:
    parts = [device(f"mig-{i}", profile="1g.10gb", uses={"memory": "10Gi"}) for i in range(3)]
    whole = device("gpu-0", uses={"memory": "30Gi"})
    slices = resource_slice(whole, *parts, counters={"memory": "30Gi"})
    free = view(bare_node(), slices)
    used = view(bare_node(), slices, claim("c", "mig-1", pods=["p"]), claimant("p", "c"))

    assert offered(free) == {GPU: 1}
    assert offered(used) == {MIG: 3}
    assert held(used, "p") == {MIG: 1}


def test_a_device_whose_counters_cannot_be_read_is_not_on_offer() -> None:
    slices = resource_slice(
        device("gpu-0", uses={"memory": "much"}),
        device("gpu-1", uses={"memory": "1"}),
        counters={"memory": "1"},
    )

    assert offered(view(bare_node(), slices)) == {GPU: 1}


def test_a_device_without_a_node_is_on_no_nodes_offer_until_it_is_held() -> None:
    slices = resource_slice(*boards(2), node="")
    holding = (claim("c", "gpu-0", pods=["p"]), claimant("p", "c"))

    assert offered(view(bare_node(), slices)) == {}
    assert offered(view(bare_node(), slices, *holding)) == {GPU: 1}


def test_a_board_that_several_pods_use_is_so_many_shares_and_no_board() -> None:
    seen = view(
        bare_node(),
        resource_slice(*boards(2)),
        claim("c", "gpu-0", pods=["p", "q"]),
        claimant("p", "c"),
        claimant("q", "c"),
    )

    assert (held(seen, "p"), held(seen, "q")) == ({SHARED: 1}, {SHARED: 1})
    assert offered(seen) == {GPU: 1, SHARED: 2}


def test_a_share_that_the_driver_gave_beside_others_is_no_board() -> None:
    seen = view(
        bare_node(),
        resource_slice(*boards(1)),
        claim("c", "gpu-0", pods=["p"], result={"shareID": "s-1"}),
        claimant("p", "c"),
    )

    assert held(seen, "p") == {SHARED: 1}
    assert offered(seen) == {SHARED: 1}


def test_a_shared_device_without_a_name_for_shares_is_one_device_that_is_over_full() -> None:
    cards = resource_slice(device("d-0"), device("d-1"), driver="gpu.amd.com")
    both = claim("c", "d-0", driver="gpu.amd.com", asks="gpu.amd.com", pods=["p", "q"])
    free = world(bare_node(), cards, both, claimant("p", "c"), claimant("q", "c")).free["node-1"]

    assert free["amd.com/gpu"] == 0


def test_a_board_that_a_claim_keeps_without_a_pod_is_not_free() -> None:
    found = world(bare_node(), resource_slice(*boards(4)), claim("kept", "gpu-0"))

    assert found.free["node-1"][GPU] == 3
    assert found.fleet_boards == 4


def test_what_is_free_is_what_slices_show_without_what_claims_were_given() -> None:
    found = world(
        bare_node(),
        resource_slice(*boards(8)),
        claim("a", "gpu-0", "gpu-1", pods=["p"]),
        claim("b", "gpu-2", pods=["q"]),
        claimant("p", "a"),
        claimant("q", "b"),
    )

    assert found.free["node-1"][GPU] == 5


@pytest.mark.parametrize(
    "backing",
    [{"of": "c", "gpus": 0, "backed_by": ""}, {"of": "", "gpus": 4, "backed_by": "c"}],
    ids=["claim", "extended resource"],
)
def test_what_a_claim_gave_is_reported_and_never_resized(backing: dict[str, Any]) -> None:
    gpus, named = int(backing["gpus"]), [backing["of"]] if backing["of"] else []
    template = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]} if named else {}
    stated = {"containers": [{"name": "main", "resources": {"limits": {GPU: str(gpus)} if gpus else {}}}]}
    owned = owner("Deployment", "d", uid="uid-d")
    found = plan(
        assemble(
            view(
                bare_node(),
                resource_slice(*boards(4)),
                make(wire.Deployment, "d", spec={"template": {"spec": stated | template}}),
                claim("c", *(f"gpu-{i}" for i in range(4)), pods=["p"], extended=bool(gpus)),
                claimant("p", *named, gpus=gpus, backed_by=backing["backed_by"], owner=owned),
            ),
            reading(),
            now_ms=NOW_MS,
        ),
        Policy(),
        NOW_MS,
    )
    (row,) = found.rows
    (refusal,) = [one for one in found.refusals if one.reason is Reason.NO_LEVER]

    assert (row.workload.name, row.resource, row.held) == ("d", GPU, 4)
    assert found.actions == ()
    assert "by resource claims, which are read and never changed" in refusal.evidence


def test_without_claims_and_slices_nothing_changes() -> None:
    plain = stores(node("node-1"), pod("p"), pod("q", gpus=0), deployment("d")).freeze()

    assert with_devices(plain) is plain


def test_a_view_is_counted_once() -> None:
    once = view(bare_node(), resource_slice(*boards(2)), claim("c", "gpu-0", pods=["p"]), claimant("p", "c"))

    assert with_devices(once) is once


def test_equal_pods_with_equal_devices_share_a_shape() -> None:
    objects = [claim(f"c{i}", f"gpu-{i}", pods=[f"p{i}"]) for i in range(3)]
    seen = view(*objects, *(claimant(f"p{i}", f"c{i}") for i in range(3)))

    assert len({id(e.shape) for e in seen.pods.pods.values() if isinstance(e, PodEntry)}) == 1


def test_the_order_in_which_objects_came_changes_nothing() -> None:
    objects = [
        bare_node(),
        resource_slice(*boards(4)),
        device_class(extended=GPU),
        claim("a", "gpu-0", pods=["p"]),
        claim("b", "gpu-0", pods=["q"]),
        claimant("p", "a"),
        claimant("q", "b"),
    ]

    def snapshot(items: list[Any]) -> Snapshot:
        return assemble(stores(*items).freeze(), reading(), now_ms=NOW_MS)

    def content(found: Snapshot) -> bytes:
        rows = (found.shapes, found.pods, found.nodes, found.workloads)
        return msgspec.json.encode(rows, order="deterministic")

    assert content(snapshot(objects)) == content(snapshot(objects[::-1]))
