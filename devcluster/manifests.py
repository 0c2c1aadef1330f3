"""The shipped manifests as `kubectl apply -k` would apply them, and the part of them that a process outside a pod needs.

Nothing executes in a pod here, so the service under test is a local process with the shipped account's rights.
"""

import subprocess
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import yaml

from devcluster.binaries import ensure_binaries
from devcluster.errors import KubectlError

ShippedMode: TypeAlias = Literal["recommend", "apply"]

MANIFESTS: Final = Path(__file__).resolve().parents[1] / "k8s"
MODES: Final[dict[ShippedMode, Path]] = {
    "recommend": MANIFESTS / "base",
    "apply": MANIFESTS / "overlays/apply",
}
RIGHTS: Final = frozenset(
    {"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
)


def rendered(folder: Path) -> list[dict[str, Any]]:
    """The objects of a kustomization, as the pinned kubectl builds them; blocking, well under a second."""
    kubectl = ensure_binaries().path("kubectl")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, check=False)
    if done.returncode != 0:
        raise KubectlError(f"kubectl kustomize {folder}: {done.stderr.decode().strip()}")
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def shipped_rights(mode: ShippedMode) -> list[dict[str, Any]]:
    """What an operator grants for a mode: namespace, account, roles and bindings, and nothing that runs."""
    return [item for item in rendered(MODES[mode]) if item["kind"] in RIGHTS]
