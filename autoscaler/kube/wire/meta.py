"""What every Kubernetes object carries, reduced to the fields somebody reads.

Decoding skips whatever is not declared, so a field added here costs time and memory for every object of every kind.
Go writes nil slices, maps and pointers as ``null``: such fields are declared ``| None`` and read as ``field or ()``.
"""

from typing import Annotated

import msgspec

LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The API's own integers: a larger one is no answer of an API server, and nothing after could hold it."""
IntOrString = Int32 | str
"""``maxSurge: 1`` or ``maxSurge: "25%"``, as the API has it."""


class Wire(msgspec.Struct, rename="camel", kw_only=True, gc=False):
    """The layout all wire structs share: camelCase names, not tracked by the cycle collector (they form trees)."""


class Present(Wire):
    """An object of which only the existence matters; its content is skipped while decoding."""


class OwnerReference(Wire):
    """One ``metadata.ownerReferences`` entry."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Wire):
    """Object metadata; ``last-applied-configuration`` is dropped while decoding and never reaches a store."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    def __post_init__(self) -> None:
        if self.annotations is not None:
            self.annotations.pop(LAST_APPLIED_ANNOTATION, None)


class TemplateMeta(Wire):
    """Metadata of a pod or job template: it names nothing and has no version."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Condition(Wire):
    """A ``status.conditions`` entry of any kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class SelectorRequirement(Wire):
    """``key operator values`` of a label, node or quota-scope selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Wire):
    """A label selector. An absent selector (``None``) and an empty one mean different things to a PDB."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class ListMeta(Wire):
    """``metadata`` of a list answer. The continue token is opaque."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: Int64 | None = None
