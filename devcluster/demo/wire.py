"""The fields of the objects that the demonstration watches."""

from typing import Any

import msgspec


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Who an object is."""

    name: str
    uid: str
    namespace: str = ""
    labels: dict[str, str] | None = None


class Resources(msgspec.Struct, frozen=True):
    """What a container is limited to."""

    limits: dict[str, Any] | None = None


class Container(msgspec.Struct, frozen=True):
    """A container."""

    name: str
    resources: Resources = Resources()


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a pod asks for and where it is."""

    containers: list[Container]
    node_name: str = ""
    priority_class_name: str = ""


class Condition(msgspec.Struct, frozen=True):
    """A condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[Condition] | None = None


class Pod(msgspec.Struct, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = PodStatus()


class QuotaStatus(msgspec.Struct, frozen=True):
    """What a quota allows and what is used of it."""

    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class Quota(msgspec.Struct, frozen=True):
    """A ResourceQuota."""

    metadata: Metadata
    status: QuotaStatus = QuotaStatus()


class BudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The health that a disruption budget counts."""

    current_healthy: int = 0
    desired_healthy: int = 0


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Metadata
    status: BudgetStatus = BudgetStatus()
