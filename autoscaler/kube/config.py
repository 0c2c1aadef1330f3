"""How to reach the API server: from a kubeconfig, from inside a pod, or as told.

The only module that uses the Kubernetes client library, and only for what it is good at: reading kubeconfigs with all their
authentication plugins. Loading reads files and builds TLS contexts, so it runs in a thread.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autoscaler.kube.credentials import CachedCredentials, Credentials, FixedCredentials, token_file
from autoscaler.kube.errors import AccessError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """Everything needed to talk to one API server."""

    server: str
    """Scheme, host, port and perhaps a path, without a slash at the end."""
    credentials: Credentials = field(default_factory=FixedCredentials)
    tls: ssl.SSLContext | None = None
    """None for plain http only."""
    tls_server_name: str | None = None
    proxy: str | None = None
    namespace: str | None = None
    source: str = "explicit"
    """Where this came from, in words for ``doctor`` and logs."""


async def find_access(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> ClusterAccess:
    """The access an operator expects: the kubeconfig named, else ``KUBECONFIG``, else the pod's own, else ``~/.kube/config``."""
    environ = os.environ if environ is None else environ
    if kubeconfig is not None:
        return await from_kubeconfig(str(kubeconfig), context=context)
    if environ.get("KUBECONFIG"):
        return await from_kubeconfig(environ["KUBECONFIG"], context=context)
    if context is None and environ.get("KUBERNETES_SERVICE_HOST"):
        return await in_cluster(environ=environ)
    return await from_kubeconfig("~/.kube/config", context=context)


async def in_cluster(
    *,
    environ: Mapping[str, str] | None = None,
    token_path: Path = SERVICE_ACCOUNT / "token",
    ca_path: Path = SERVICE_ACCOUNT / "ca.crt",
    namespace_path: Path = SERVICE_ACCOUNT / "namespace",
) -> ClusterAccess:
    """The access of a pod's ServiceAccount; every path can be given, so it can be used and tested outside a pod."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise AccessError(
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        )
    credentials = token_file(token_path)
    await credentials.authorization()  # a missing token is told now, not at the first request
    return ClusterAccess(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=credentials,
        tls=await asyncio.to_thread(build_tls, ca_path),
        namespace=await asyncio.to_thread(_read_namespace, namespace_path),
        source=f"in-cluster ({host}:{port})",
    )


async def from_kubeconfig(path: str, *, context: str | None = None) -> ClusterAccess:
    """The access a kubeconfig describes (several files may be joined by ``:``, as kubectl has it).

    A ``tokenFile`` is read again each minute; exec and cloud plugins are asked again when their token has run out; after
    a 401 the whole file is read again, so a fresh ``login`` is noticed.
    """
    return await asyncio.to_thread(_load_kubeconfig, path, context)


def _load_kubeconfig(path: str, context: str | None) -> ClusterAccess:
    files = [Path(part).expanduser() for part in path.split(os.pathsep) if part]
    if not any(file.is_file() for file in files):
        raise AccessError(f"no kubeconfig at {path}")
    loader, settings = _run_loader(path, context)
    server = str(settings.host).rstrip("/")
    tls = None
    if server.startswith("https"):
        tls = build_tls(
            Path(settings.ssl_ca_cert) if settings.ssl_ca_cert else None,
            certificate=settings.cert_file,
            key=settings.key_file,
            verify=settings.verify_ssl,
        )
    active = loader.current_context or {}
    return ClusterAccess(
        server=server,
        credentials=_credentials(path, context, loader, settings),
        tls=tls,
        tls_server_name=settings.tls_server_name,
        proxy=settings.proxy,
        namespace=(active.get("context") or {}).get("namespace"),
        source=f"kubeconfig {path} (context {active.get('name', '?')})",
    )


def _run_loader(path: str, context: str | None) -> tuple[Any, Any]:
    """The client library's loader and what it found. Blocking; must run in a thread without an event loop."""
    # Imported here because it costs 0.4 s and 38 MiB, and a service in a pod never needs it.
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415
    from kubernetes_asyncio.config import kube_config  # noqa: PLC0415

    settings = Configuration()
    try:
        # The loader is a coroutine that reads files between its awaits: it gets a loop of its own in this thread.
        loader = asyncio.run(
            kube_config.load_kube_config(
                config_file=path, context=context, client_configuration=settings, persist_config=False
            )
        )
    except Exception as error:  # the loader raises whatever its parsers and plugins raise
        raise AccessError(f"cannot use kubeconfig {path}: {str(error) or type(error).__name__}") from error
    return loader, settings


def _credentials(path: str, context: str | None, loader: Any, settings: Any) -> Credentials:
    present = settings.api_key.get("BearerToken")
    user = getattr(loader, "_user", None)
    file = user.safe_get("tokenFile") if user is not None else None
    if user is not None and file:
        # As client-go has it, and unlike the loader: a tokenFile wins over a literal token, and is read again.
        return token_file(Path(user.path).parent / str(file))
    if present is None:
        return FixedCredentials()

    async def reload() -> str | None:
        _, fresh = await asyncio.to_thread(_run_loader, path, context)
        return fresh.api_key.get("BearerToken")  # type: ignore[no-any-return]

    plugin = loader.provider is not None or (user is not None and user.safe_get("exec") is not None)
    # A literal token only changes when somebody logs in again; asking a plugin costs a process.
    return CachedCredentials(reload, initial=present, reread_after_s=600.0 if plugin else float("inf"))


def build_tls(
    ca: Path | None,
    *,
    certificate: str | None = None,
    key: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """A client context. Blocking: it reads files."""
    try:
        context = ssl.create_default_context(cafile=str(ca) if ca is not None else None)
        if certificate:
            context.load_cert_chain(certificate, keyfile=key)
    except (OSError, ssl.SSLError) as error:
        raise AccessError(f"cannot set up TLS (CA {ca or 'of the system'}): {error}") from error
    # Python 3.13 turns this on by default; many clusters' own CAs lack the extensions it asks for, and kubectl does not ask.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _read_namespace(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
