"""Owners of devices by resource claims: one pod, as it is now, or none."""

from typing import Any

from unit.observe.claimed import DRIVER, POOL, claim, claimant, device, resource_slice
from unit.observe.observed import pod, stores

from autoscaler.observe.claims import claim_owners, device_owners, place_owners

BOARDS = resource_slice(device("gpu-0", uuid="GPU-AAAA"), device("gpu-1", uuid="GPU-BBBB"))


def owners(*objects: Any) -> dict[str, tuple[str, str]]:
    view = stores(*objects).freeze()
    return device_owners(view.claims, view.pods)


def test_a_board_belongs_to_the_pod_for_which_its_claim_is_reserved() -> None:
    found = owners(BOARDS, claim("c", "gpu-1", pods=["p"]), claimant("p", "c"))

    assert found == {"bbbb": ("ml", "p")}


def test_a_pod_with_a_claim_for_its_extended_resource_is_found_too() -> None:
    found = owners(BOARDS, claim("x", "gpu-0", pods=["p"], extended=True), pod("p"))

    assert found == {"aaaa": ("ml", "p")}


def test_devices_are_found_by_place_and_by_claim() -> None:
    view = stores(claim("c", "gpu-1", pods=["p"]), claimant("p", "c")).freeze()

    assert place_owners(view.claims, view.pods) == {(DRIVER, POOL, "gpu-1"): ("ml", "p")}
    assert claim_owners(view.claims, view.pods) == {("ml", "c"): ("ml", "p")}


def test_a_device_that_several_may_use_has_no_owner() -> None:
    several = claim("c", "gpu-0", pods=["p", "q"])
    twice = (claim("a", "gpu-1", pods=["p"]), claim("b", "gpu-1", pods=["q"]))
    pods = (claimant("p", "c"), claimant("q", "c"))

    assert owners(BOARDS, several, *pods) == {}
    assert owners(BOARDS, *twice, *pods) == {}


def test_a_share_has_no_owner() -> None:
    share = claim("c", "gpu-0", pods=["p"], result={"shareID": "s-1"})

    assert owners(BOARDS, share, claimant("p", "c")) == {}


def test_monitoring_owns_nothing() -> None:
    watch = claim("c", "gpu-0", pods=["p"], result={"adminAccess": True})

    assert owners(BOARDS, watch, claimant("p", "c")) == {}


def test_a_pod_made_anew_under_the_name_is_not_the_owner() -> None:
    assert owners(BOARDS, claim("c", "gpu-0", pods=["p"]), claimant("p", "c", uid="another")) == {}


def test_a_pod_that_has_ended_or_is_not_known_is_not_the_owner() -> None:
    reserved = claim("c", "gpu-0", pods=["p"])

    assert owners(BOARDS, reserved, claimant("p", "c", phase="Succeeded")) == {}
    assert owners(BOARDS, reserved) == {}


def test_an_id_that_two_devices_bear_has_no_owner() -> None:
    twin = resource_slice(device("gpu-9", uuid="gpu-aaaa"), name="slice-2", pool="node-2", node="node-2")

    assert owners(BOARDS, twin, claim("c", "gpu-0", pods=["p"]), claimant("p", "c")) == {}


def test_an_outdated_slice_names_no_device() -> None:
    newer = resource_slice(device("gpu-0", uuid="GPU-CCCC"), name="slice-2", generation=2)

    assert owners(BOARDS, newer, claim("c", "gpu-0", pods=["p"]), claimant("p", "c")) == {"cccc": ("ml", "p")}
