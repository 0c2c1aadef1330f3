"""Claims and volumes, as far as they tie a pod to places."""

import msgspec

from autoscaler.kube.wire.meta import ObjectMeta, Wire
from autoscaler.kube.wire.pod import NodeSelector


class PersistentVolumeClaimSpec(Wire):
    """The volume that the claim is bound to; empty until it is."""

    volume_name: str = ""


class PersistentVolumeClaim(Wire):
    """A persistent volume claim."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)


class VolumeNodeAffinity(Wire):
    """Where a volume can be mounted."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire):
    """A volume that can be mounted anywhere states no affinity."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Wire):
    """A persistent volume."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
