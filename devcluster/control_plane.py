"""The command line of every component, as plain data.

The flags are those that were proved to give a whole control plane without containers: all controllers run
(without the node controller the not-ready taint of new nodes would stay for ever), KWOK renews node leases,
and everything listens on the loopback address only.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devcluster.binaries import Binaries
from devcluster.pinsets import PINS_DIR
from devcluster.ports import LOOPBACK, Ports
from devcluster.processes import Command

_OWN_STAGES = Path(__file__).parent / "stages"


@dataclass(frozen=True)
class Layout:
    """Where everything of one cluster lives inside its run folder."""

    run_dir: Path

    def __post_init__(self) -> None:
        for folder in (self.logs, self.keys, self.kubeconfigs, self.prometheus_targets):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def logs(self) -> Path:
        """One log per component."""
        return self.run_dir / "logs"

    @property
    def keys(self) -> Path:
        """Keys, certificates and tokens."""
        return self.run_dir / "keys"

    @property
    def kubeconfigs(self) -> Path:
        """One kubeconfig per identity."""
        return self.run_dir / "kubeconfigs"

    @property
    def ca_path(self) -> Path:
        """The certificate that the API server makes for itself; clients trust it."""
        return self.keys / "apiserver.crt"

    @property
    def signing_key(self) -> Path:
        """The private key of ServiceAccount tokens."""
        return self.keys / "service-account.key"

    @property
    def verifying_key(self) -> Path:
        """The public key of ServiceAccount tokens."""
        return self.keys / "service-account.pub"

    @property
    def token_file(self) -> Path:
        """The API server's static tokens."""
        return self.keys / "tokens.csv"

    @property
    def exporter_token(self) -> Path:
        """The GPU exporter's own token."""
        return self.keys / "gpu-exporter.token"

    @property
    def audit_policy(self) -> Path:
        """What the API server audits."""
        return self.run_dir / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        """One JSON object per audited request."""
        return self.run_dir / "audit.log"

    @property
    def prometheus_config(self) -> Path:
        """Prometheus' configuration file."""
        return self.run_dir / "prometheus.yaml"

    @property
    def prometheus_targets(self) -> Path:
        """Files of scrape targets that may be added while Prometheus runs."""
        return self.run_dir / "prometheus-targets"

    @property
    def exporter_state(self) -> Path:
        """The GPU exporter's memory over its own restarts."""
        return self.run_dir / "gpu-exporter.json"

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of a named identity."""
        return self.kubeconfigs / f"{name}.yaml"


@dataclass(frozen=True)
class CommandLines:
    """Builds the command of each component of one cluster."""

    binaries: Binaries
    layout: Layout
    ports: Ports

    @property
    def etcd_url(self) -> str:
        """Where etcd serves clients."""
        return f"http://{LOOPBACK}:{self.ports.etcd_client}"

    @property
    def server_url(self) -> str:
        """Where the API server serves."""
        return f"https://{LOOPBACK}:{self.ports.api_server}"

    def etcd(self) -> Command:
        """The store; fsync is off since nothing here outlives the run."""
        peer_url = f"http://{LOOPBACK}:{self.ports.etcd_peer}"
        return self._command(
            "etcd",
            f"--data-dir={self.layout.run_dir / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync",
            "--log-level=error",
        )

    def api_server(self) -> Command:
        """The API server; on SIGTERM it waits a minute for open watches, so it is killed instead."""
        return self._command(
            "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.ports.api_server}",
            f"--cert-dir={self.layout.keys}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.layout.verifying_key}",
            f"--service-account-signing-key-file={self.layout.signing_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            f"--token-auth-file={self.layout.token_file}",
            f"--audit-policy-file={self.layout.audit_policy}",
            f"--audit-log-path={self.layout.audit_log}",
            "--etcd-compaction-interval=5m",
            terminate_first=False,
        )

    def controller_manager(self) -> Command:
        """All controllers, each under its own ServiceAccount."""
        return self._command(
            "kube-controller-manager",
            f"--kubeconfig={self.layout.kubeconfig('kube-controller-manager')}",
            f"--service-account-private-key-file={self.layout.signing_key}",
            f"--root-ca-file={self.layout.ca_path}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def scheduler(self) -> Command:
        """The real scheduler, with room for large fleets."""
        return self._command(
            "kube-scheduler",
            f"--kubeconfig={self.layout.kubeconfig('kube-scheduler')}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=300",
            "--kube-api-burst=600",
        )

    def kwok(self) -> Command:
        """The kubelets of all nodes."""
        return self._command(
            "kwok",
            f"--kubeconfig={self.layout.kubeconfig('kwok')}",
            "--manage-all-nodes=true",
            f"--node-ip={LOOPBACK}",
            "--node-lease-duration-seconds=40",
            f"--server-address={LOOPBACK}:{self.ports.kwok}",
            *(f"--config={path}" for path in self._stages()),
        )

    def prometheus(self) -> Command:
        """Prometheus over the run folder."""
        return self._command(
            "prometheus",
            f"--config.file={self.layout.prometheus_config}",
            f"--storage.tsdb.path={self.layout.run_dir / 'prometheus'}",
            f"--web.listen-address={LOOPBACK}:{self.ports.prometheus}",
            "--log.level=warn",
        )

    def exporter(self) -> Command:
        """The GPU exporter, a process of its own so that a busy test cannot starve it."""
        return Command(
            name="gpu-exporter",
            arguments=[
                sys.executable,
                "-m",
                "devcluster.exporter",
                f"--server={self.server_url}",
                f"--ca-file={self.layout.ca_path}",
                f"--token-file={self.layout.exporter_token}",
                f"--port={self.ports.exporter}",
                f"--state={self.layout.exporter_state}",
            ],
            log_path=self.layout.logs / "gpu-exporter.log",
            environment={"PYTHONPATH": str(PINS_DIR.parent.parent)},
        )

    def _stages(self) -> Iterator[Path]:
        """KWOK's stages, with our own instead of those of the same name."""
        own = {path.name: path for path in sorted(_OWN_STAGES.glob("*.yaml"))}
        yield from (path for path in self.binaries.kwok_stages() if path.name not in own)
        yield from own.values()

    def _command(self, name: str, *flags: str, terminate_first: bool = True) -> Command:
        return Command(
            name=name,
            arguments=[self.binaries.path(name), *flags],
            log_path=self.layout.logs / f"{name}.log",
            terminate_first=terminate_first,
        )
