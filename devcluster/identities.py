"""Who is who in a devcluster: keys, static tokens and kubeconfigs.

Each control plane component has an identity of its own, as in a real cluster, so that the audit log tells
the writes of the control plane from everybody else's.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ADMIN_USER = "devcluster-admin"
KWOK_USER = "devcluster-kwok"
EXPORTER_USER = "devcluster-gpu-exporter"
KUEUE_USER = "devcluster-kueue"
SCHEDULER_USER = "system:kube-scheduler"
CONTROLLER_MANAGER_USER = "system:kube-controller-manager"

_MASTERS = "system:masters"


@dataclass(frozen=True)
class Identity:
    """A user with a static token."""

    user: str
    token: str
    groups: tuple[str, ...] = ()


def make_identities() -> dict[str, Identity]:
    """Fresh identities by user name."""
    groups = {
        ADMIN_USER: (_MASTERS,),
        KWOK_USER: (_MASTERS,),
        EXPORTER_USER: (_MASTERS,),
        KUEUE_USER: (_MASTERS,),
        SCHEDULER_USER: (),
        CONTROLLER_MANAGER_USER: (),
    }
    return {user: Identity(user, secrets.token_hex(16), group) for user, group in groups.items()}


def write_token_file(path: Path, identities: Iterable[Identity]) -> None:
    """The API server's static token file."""
    lines = [f'{one.token},"{one.user}","{one.user}","{",".join(one.groups)}"' for one in identities]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)


def write_signing_keys(private_path: Path, public_path: Path) -> None:
    """The RSA pair that signs and verifies ServiceAccount tokens."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    private_path.chmod(0o600)
    public_path.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def write_kubeconfig(
    path: Path, *, server_url: str, ca_path: Path, user: dict[str, str], namespace: str = "default"
) -> None:
    """A kubeconfig with one context; `user` holds `token` or `tokenFile`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "devcluster",
        "clusters": [
            {
                "name": "devcluster",
                "cluster": {"server": server_url, "certificate-authority": str(ca_path)},
            }
        ],
        "users": [{"name": "devcluster", "user": user}],
        "contexts": [
            {
                "name": "devcluster",
                "context": {"cluster": "devcluster", "user": "devcluster", "namespace": namespace},
            }
        ],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    path.chmod(0o600)
