"""A pod's volumes and the places that they are tied to."""

from typing import Any

from unit.observe.observed import make, pod, snapshot

from autoscaler.kube import wire
from autoscaler.model.shapes import Requirement


def claim(name: str, volume: str = "", **more: Any) -> Any:
    return make(wire.PersistentVolumeClaim, name, spec={"volumeName": volume} if volume else {}, **more)


def volume(name: str, **terms: Any) -> Any:
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [terms]}}} if terms else {}
    return make(wire.PersistentVolume, name, namespace="", spec=affinity)


def using(*claims: str, ephemeral: tuple[str, ...] = ()) -> dict[str, Any]:
    named = [{"name": f"v-{one}", "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return {"volumes": named + [{"name": one, "ephemeral": {}} for one in ephemeral]}


ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
HOST = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


def test_volumes_are_followed_to_where_they_can_be_mounted() -> None:
    found = snapshot(
        pod("p", spec=using("zonal", "anywhere", ephemeral=("scratch",))),
        claim("zonal", "pv-zonal"),
        claim("anywhere", "pv-anywhere"),
        claim("p-scratch", "pv-local"),
        volume("pv-zonal", **ZONE),
        volume("pv-anywhere"),
        volume("pv-local", **HOST),
    )

    assert found.pods[0].volume_terms == (
        ((Requirement("metadata.name", "In", ("node-1",), of_name=True),),),
        ((Requirement("zone", "In", ("a",)),),),
    )


def test_a_claim_of_which_no_volume_is_known_is_tied_to_a_place_that_is_not_known() -> None:
    unbound, other_namespace = claim("mine"), claim("mine", "pv", metadata={"namespace": "lab"})

    assert snapshot(pod("p", spec=using("mine")), unbound, other_namespace).pods[0].volume_terms == ((),)
    assert snapshot(pod("p")).pods[0].volume_terms == ()
