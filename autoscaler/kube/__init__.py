"""Transport to one Kubernetes API server: how to reach it, how to read from it, what it is called when that fails.

Everything that speaks HTTP to Kubernetes lives here, and only here is the Kubernetes client library imported (for kubeconfigs
and authentication). This room does not know what is done with what it reads: no stores, no decisions, no metrics library,
no logging. It hands out decoded wire structs, typed errors and plain status values.
"""

from autoscaler.kube.config import ClusterAccess, find_access, from_kubeconfig, in_cluster
from autoscaler.kube.credentials import Credentials, FixedCredentials, token_file
from autoscaler.kube.discovery import (
    Absent,
    Availability,
    Available,
    Denied,
    Discovery,
    discover,
)
from autoscaler.kube.errors import (
    AccessError,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedBody,
    Unreachable,
)
from autoscaler.kube.kinds import KINDS, Kind, Page, Versioned
from autoscaler.kube.reflect import ReflectConfig
from autoscaler.kube.session import KubeSession, RequestRecord, SessionLimits, WriteVerb
from autoscaler.kube.watch import Reflector, ReflectorStatus, StoreWriter

__all__ = [
    "KINDS",
    "Absent",
    "AccessError",
    "ApiError",
    "Availability",
    "Available",
    "ClusterAccess",
    "Conflict",
    "Credentials",
    "Denied",
    "Discovery",
    "FixedCredentials",
    "Forbidden",
    "Gone",
    "Invalid",
    "Kind",
    "KubeError",
    "KubeSession",
    "NotFound",
    "Page",
    "ReflectConfig",
    "Reflector",
    "ReflectorStatus",
    "RequestRecord",
    "ServerError",
    "SessionLimits",
    "StoreWriter",
    "TooManyRequests",
    "Unauthorized",
    "UnexpectedBody",
    "Unreachable",
    "Versioned",
    "WriteVerb",
    "discover",
    "find_access",
    "from_kubeconfig",
    "in_cluster",
    "token_file",
]
