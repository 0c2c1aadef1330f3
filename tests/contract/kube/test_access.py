"""Ways to the API server: kubeconfigs, pods, tokens and certificates, over real TLS where it matters."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from autoscaler.kube.config import build_tls, find_access, from_kubeconfig, in_cluster
from autoscaler.kube.errors import AccessError, Unauthorized, Unreachable
from autoscaler.kube.kinds import POD
from autoscaler.kube.session import KubeSession

pytestmark = pytest.mark.contract


def self_signed(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, as kube-apiserver makes them for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=36_500))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / f"{name}.crt", folder / f"{name}.key"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate_path, key_path


class TlsApi:
    """An API server over TLS that knows one token."""

    def __init__(self, folder: Path) -> None:
        self.token = "good"
        self.ca, self._key = self_signed(folder, "server")
        self.port = 0

    async def answer(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
        return web.json_response({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []})

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, self._key)
        return context


@pytest.fixture
async def tls_api(tmp_path: Path) -> AsyncIterator[TlsApi]:
    made = TlsApi(tmp_path)
    app = web.Application()
    app.router.add_get("/api/v1/pods", made.answer)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=made.context())
    assert server.port is not None
    made.port = server.port
    yield made
    await server.close()


@pytest.fixture
def kubeconfig(tls_api: TlsApi, tmp_path: Path) -> Callable[..., Path]:
    def write(user: dict[str, Any], **cluster: Any) -> Path:
        value = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "dev",
            "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {
                        "server": f"https://127.0.0.1:{tls_api.port}/",
                        "certificate-authority": "server.crt",
                        **cluster,
                    },
                }
            ],
            "users": [{"name": "u", "user": user}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(value))
        return path

    return write


async def list_pods(access: Any) -> str:
    async with KubeSession(access) as session:
        return (await session.list_page(POD, limit=1)).metadata.resource_version


async def test_a_kubeconfig_with_a_token_and_relative_paths_works(kubeconfig: Any) -> None:
    access = await find_access(kubeconfig=kubeconfig({"token": "good"}), environ={})

    assert await list_pods(access) == "1"
    assert access.namespace == "ml"
    assert "context dev" in access.source
    assert not access.server.endswith("/")


async def test_a_token_file_of_a_kubeconfig_follows_its_rotation(
    kubeconfig: Any, tls_api: TlsApi, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("good")
    access = await from_kubeconfig(str(kubeconfig({"tokenFile": "token", "token": "ignored"})))
    assert await list_pods(access) == "1"
    tls_api.token = "better"
    (tmp_path / "token").write_text("better")

    assert await list_pods(access) == "1"


async def test_a_token_in_a_kubeconfig_is_read_again_after_a_login(kubeconfig: Any, tls_api: TlsApi) -> None:
    access = await from_kubeconfig(str(kubeconfig({"token": "good"})))
    tls_api.token = "better"
    kubeconfig({"token": "better"})

    assert await list_pods(access) == "1"


async def test_an_exec_plugin_gives_the_token(kubeconfig: Any, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    credential = (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"good"}}'
    )
    plugin.write_text(f"#!/bin/sh\necho '{credential}'\n")
    plugin.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }

    assert await list_pods(await from_kubeconfig(str(kubeconfig(user)))) == "1"


async def test_a_token_that_stays_refused_is_unauthorized(kubeconfig: Any) -> None:
    access = await from_kubeconfig(str(kubeconfig({"token": "wrong"})))

    with pytest.raises(Unauthorized):
        await list_pods(access)


async def test_a_server_of_another_authority_is_a_tls_fault(kubeconfig: Any, tmp_path: Path) -> None:
    self_signed(tmp_path, "other")
    access = await from_kubeconfig(
        str(kubeconfig({"token": "good"}, **{"certificate-authority": "other.crt"}))
    )

    with pytest.raises(Unreachable) as caught:
        await list_pods(access)

    assert caught.value.reason == "tls"


async def test_a_pod_uses_its_service_account(tls_api: TlsApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("good")
    (tmp_path / "namespace").write_text("gpu-autoscaler")
    access = await in_cluster(
        environ={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(tls_api.port)},
        token_path=tmp_path / "token",
        ca_path=tls_api.ca,
        namespace_path=tmp_path / "namespace",
    )

    assert await list_pods(access) == "1"
    assert access.namespace == "gpu-autoscaler"


async def test_an_ipv6_service_host_is_bracketed(tls_api: TlsApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("good")
    access = await in_cluster(
        environ={"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"},
        token_path=tmp_path / "token",
        ca_path=tls_api.ca,
    )

    assert access.server == "https://[fd00::1]:443"


async def test_the_kubeconfig_of_the_environment_comes_before_the_pod(kubeconfig: Any) -> None:
    environ = {"KUBECONFIG": str(kubeconfig({"token": "good"})), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    assert "kubeconfig" in (await find_access(environ=environ)).source


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "a: [",
        "apiVersion: v1\nkind: Config\n",
        "current-context: nope\ncontexts: []\nclusters: []\nusers: []\n",
    ],
    ids=["empty", "list", "no yaml", "no context", "unknown context"],
)
async def test_a_kubeconfig_that_cannot_be_used_is_an_access_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)

    with pytest.raises(AccessError, match="cannot use kubeconfig"):
        await from_kubeconfig(str(path))


async def test_a_client_certificate_needs_no_token(kubeconfig: Any, tmp_path: Path) -> None:
    self_signed(tmp_path, "client")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    access = await from_kubeconfig(str(kubeconfig(user)))

    assert await access.credentials.authorization() is None


async def test_plain_http_needs_no_certificates(kubeconfig: Any) -> None:
    access = await from_kubeconfig(str(kubeconfig({"token": "t"}, server="http://127.0.0.1:1")))

    assert access.tls is None


async def test_inside_a_pod_its_own_access_is_found() -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(AccessError, match="/var/run/secrets"):
        await find_access(environ=environ)


async def test_a_context_that_is_named_is_looked_for_in_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(AccessError, match=r"no kubeconfig at ~/\.kube/config"):
        await find_access(context="dev", environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


async def test_a_kubeconfig_that_is_not_there_is_an_access_error(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no kubeconfig at"):
        await find_access(kubeconfig=tmp_path / "none", environ={})


async def test_outside_a_cluster_in_cluster_access_says_what_is_missing() -> None:
    with pytest.raises(AccessError, match="KUBERNETES_SERVICE_HOST"):
        await in_cluster(environ={})


def test_a_missing_authority_is_an_access_error(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="cannot set up TLS"):
        build_tls(tmp_path / "none")


def test_verification_is_on_unless_switched_off() -> None:
    assert build_tls(None).verify_mode == ssl.CERT_REQUIRED
    assert build_tls(None, verify=False).verify_mode == ssl.CERT_NONE
