"""Which places the volumes of a pod are tied to: claim, then volume, then the volume's node affinity."""

from autoscaler.observe.pods import PodEntry
from autoscaler.observe.shapes import Places
from autoscaler.observe.stores import StoresView

_NOT_KNOWN: Places = ()


def volume_terms(entry: PodEntry, stores: StoresView) -> tuple[Places, ...]:
    """The places of each volume that is tied to some; a claim of which no volume is known may be tied to any one place."""
    found = (_places(f"{entry.namespace}/{name}", stores) for name in entry.volumes)
    return tuple(places for places in found if places is not None)


def _places(claim: str, stores: StoresView) -> Places | None:
    volume = stores.bound_volumes.get(claim)
    return _NOT_KNOWN if volume is None else stores.volume_places.get(f"/{volume}")
