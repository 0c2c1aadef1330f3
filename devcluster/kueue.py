"""The real Kueue controller beside a running devcluster, for the tests that ask for it.

It is built from a module of pins of its own, on demand. Everything that it serves is on the loopback address: its
webhooks are called by URL. It insists on a metrics certificate under a fixed path, so it runs in a mount namespace of
its own in which that path exists: the machine is left as it is.
"""

import asyncio
import base64
import ipaddress
import os
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from devcluster.binaries import ensure_on_demand
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from devcluster.identities import KUEUE_USER
from devcluster.pinsets import KUEUE, KUEUE_CRDS
from devcluster.ports import LOOPBACK, free_ports
from devcluster.processes import Command, Component

NAMESPACE: Final = "kueue-system"
CRDS: Final = ("workloads", "clusterqueues", "localqueues", "cohorts", "resourceflavors")
"""What a test of ours needs; the controller itself watches all of them."""
_WEBHOOKS: Final = frozenset({"jobs", "workloads", "clusterqueues", "resourceflavors", "cohorts"})
_FIXED_PATH: Final = Path("kueue/metrics/certs")
_START_TIMEOUT_S: Final = 60.0
_VALID: Final = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
"""Nothing depends on the certificate's age: it and its key are gone with the run."""
_IN_OWN_ETC: Final = 'mount -t overlay overlay -o "lowerdir=$1:/etc" /etc && shift && exec "$@"'


async def apply_crds(cluster: Cluster, names: Iterable[str] | None = CRDS) -> None:
    """Kueue's kinds alone, without a controller: quick, and nothing is built; `names` None applies all of them."""
    folder = (await asyncio.to_thread(ensure_on_demand, KUEUE_CRDS)) / "data/config/components/crd/bases"
    paths = sorted(folder.glob("*.yaml"))
    wanted = [path for path in paths if names is None or path.stem.partition("_")[2] in names]
    # Some are over the size of the annotation that a client-side apply writes.
    await cluster.apply((yaml.safe_load(path.read_text()) for path in wanted), server_side=True)
    for path in wanted:
        crd = f"crd/{path.stem.partition('_')[2]}.kueue.x-k8s.io"
        await cluster.kubectl("wait", "--for=condition=Established", crd, "--timeout=30s")


@asynccontextmanager
async def running_kueue(cluster: Cluster) -> AsyncIterator[Component]:
    """Kueue admits and stops Jobs with a queue name until the end; its webhooks are gone afterwards.

    While its webhooks are there and it is not, the API server takes no Job at all.
    """
    folder = await asyncio.to_thread(ensure_on_demand, KUEUE)
    await apply_crds(cluster, None)
    await cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    webhook, health, metrics = free_ports(3)
    room = cluster.run_dir / "kueue"
    etc = room / "etc"
    certificates = etc / _FIXED_PATH
    certificates.mkdir(parents=True)
    bundle = _write_certificate(certificates)
    config = room / "config.yaml"
    config.write_text(yaml.safe_dump(_configuration(certificates, webhook, health, metrics)))
    component = Component(
        Command(
            name="kueue",
            arguments=[
                *(_program("unshare"), "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",))),
                *("sh", "-c", _IN_OWN_ETC, "sh", etc),
                *(
                    folder / "bin/kueue",
                    "--config",
                    config,
                    "--kubeconfig",
                    cluster.kubeconfig_of(KUEUE_USER),
                ),
            ],
            log_path=cluster.logs_dir / "kueue.log",
        )
    )
    hooks = list(_webhooks(folder / "data/config/components/webhook/manifests.yaml", webhook, bundle))
    component.start()
    try:
        await cluster.until(
            lambda: cluster.answers(f"http://{LOOPBACK}:{health}/readyz"),
            what="kueue being ready",
            needs=[component],
            timeout_s=_START_TIMEOUT_S,
        )
        await cluster.apply(hooks)
        yield component
    finally:
        for hook in hooks:
            await cluster.kubectl("delete", hook["kind"], hook["metadata"]["name"], "--ignore-not-found")
        await component.stop(grace_s=5)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise DevclusterError(f"kueue needs the program {name}")
    return found


def _configuration(certificates: Path, webhook: int, health: int, metrics: int) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "metrics": {"bindAddress": f"{LOOPBACK}:{metrics}", "enableClusterQueueResources": True},
        "webhook": {"host": LOOPBACK, "port": webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        # It would open a fixed port and read certificates from another fixed path.
        "featureGates": {"VisibilityOnDemand": False},
        "integrations": {"frameworks": ["batch/job"]},
    }


def _webhooks(manifest: Path, port: int, bundle: bytes) -> Iterable[dict[str, Any]]:
    """Kueue's own webhook objects, called by URL, less those of kinds that nobody here has."""
    here = [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
    for document in yaml.safe_load_all(manifest.read_text()):
        document["metadata"]["name"] = f"kueue-{document['metadata']['name']}"
        document["webhooks"] = [
            hook
            for hook in document["webhooks"]
            if _WEBHOOKS.intersection(name for rule in hook["rules"] for name in rule["resources"])
        ]
        for hook in document["webhooks"]:
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"] = {
                "url": f"https://{LOOPBACK}:{port}{path}",
                "caBundle": base64.b64encode(bundle).decode(),
            }
            hook["namespaceSelector"] = {"matchExpressions": here}
        yield document


def _write_certificate(folder: Path) -> bytes:
    """A self-signed pair for the loopback address as tls.crt and tls.key; the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kueue")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_VALID[0])
        .not_valid_after(_VALID[1])
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "tls.crt").write_bytes(pem)
    (folder / "tls.key").write_bytes(private)
    (folder / "tls.key").chmod(0o600)
    return pem
