"""What an operator applies is taken without a warning, and grants each mode what it needs and no more."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.audit import describe
from devcluster.errors import KubectlError
from devcluster.manifests import rendered, shipped_rights
from devcluster.rooms import Room
from tests.cluster.acting import acting, boards_of, live
from tests.cluster.live_service import ACCOUNT, NAMESPACE, grant_shipped_rights, running_service
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, lightly_used
from tests.unit.manifests.rights import Right, rights_of, table
from tests.unit.manifests.sources import OVERLAYS, objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

UNCONFINED = [
    {
        "target": {"kind": "Deployment"},
        "patch": '[{"op": "remove", "path": "/spec/template/spec/securityContext/seccompProfile"}]',
    }
]


@dataclass(frozen=True)
class Installation:
    """A shipped overlay under a namespace and names of its own."""

    cluster: Cluster
    folder: Path
    home: str
    suffix: str

    @property
    def account(self) -> str:
        return f"{ACCOUNT}-{self.suffix}"

    async def apply(self) -> list[str]:
        """What `kubectl apply -k` says of each object; a warning is an error."""
        said = await self.cluster.kubectl("apply", "--warnings-as-errors", "-k", str(self.folder))
        return said.splitlines()

    async def kubeconfig(self) -> Path:
        """The account's own."""
        return await self.cluster.service_account_kubeconfig(self.home, self.account)

    def writes(self) -> list[str]:
        """Every write that the account attempted, without what it is about."""
        events = self.cluster.writes_by_service_account(self.home, self.account)
        return sorted({" ".join(describe(one).split()[:2] + describe(one).split()[-1:]) for one in events})

    def used(self) -> set[tuple[str, str, str]]:
        """Group, resource and verb of all that the account did."""
        return self.cluster.rights_used_by_service_account(self.home, self.account)

    async def allowed(self, right: Right) -> bool:
        """Whether the API server would let the account do this."""
        resource, _, subresource = right.resource.partition("/")
        user = f"system:serviceaccount:{self.home}:{self.account}"
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "groups": [
                    "system:serviceaccounts",
                    f"system:serviceaccounts:{self.home}",
                    "system:authenticated",
                ],
                "resourceAttributes": {
                    "namespace": self.home if right.namespace == NAMESPACE else right.namespace,
                    "group": right.group,
                    "resource": resource,
                    "subresource": subresource,
                    "name": right.name,
                    "verb": right.verb,
                },
            },
        }
        answer = await self.cluster.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    async def refused(self, rights: set[Right]) -> set[Right]:
        """Those of the rights that the account does not have."""
        return {right for right in rights if not await self.allowed(right)}


Install = Callable[..., Awaitable[Installation]]


@pytest_asyncio.fixture
async def install(cluster: Cluster, room: Room, tmp_path: Path) -> AsyncIterator[Install]:
    """Writes an operator's own kustomization of an overlay; whatever came of it is deleted afterwards."""
    suffix = room.namespace
    home = f"home-{suffix}"
    used: list[Installation] = []

    async def written(overlay: str, **more: Any) -> Installation:
        folder = tmp_path / overlay
        folder.mkdir()
        document = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": home,
            "nameSuffix": f"-{suffix}",
            "resources": [relative(OVERLAYS[overlay], folder)],
            **more,
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
        used.append(Installation(cluster, folder, home, suffix))
        return used[-1]

    yield written
    for one in used:
        await cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "-k", str(one.folder))


def relative(target: Path, start: Path) -> str:
    """kustomize takes no absolute paths."""
    return os.path.relpath(target, start.resolve())


async def pods_in(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    return list((await cluster.api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"])


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
async def test_an_overlay_as_shipped_is_taken_without_a_warning(cluster: Cluster, overlay: str) -> None:
    await grant_shipped_rights(cluster)  # the namespace must exist: a dry run creates nothing

    said = await cluster.kubectl(
        "apply", "--warnings-as-errors", "--dry-run=server", "-k", str(OVERLAYS[overlay])
    )

    assert "deployment.apps/gpu-autoscaler created (server dry run)" in said.splitlines()


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
async def test_an_overlay_is_applied_without_a_warning_and_its_pod_is_admitted(
    cluster: Cluster, install: Install, overlay: str
) -> None:
    installation = await install(overlay)

    first = await installation.apply()
    again = await installation.apply()
    (pod,) = await eventually(
        lambda: pods_in(cluster, installation.home), lambda pods: len(pods) == 1, what="the service's pod"
    )

    assert len(first) == len(rendered(OVERLAYS[overlay]))
    assert [line for line in again if not line.endswith(" unchanged")] == []
    assert pod["spec"]["serviceAccountName"] == installation.account
    assert [one["name"] for one in pod["spec"]["volumes"] if "projected" in one] != []


async def test_a_pod_that_is_less_confined_would_be_warned_about(install: Install) -> None:
    installation = await install("recommend", patches=UNCONFINED)
    with pytest.raises(KubectlError, match=r'would violate PodSecurity "restricted:latest".*seccompProfile'):
        await installation.apply()


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
async def test_the_account_may_do_what_its_mode_needs_and_no_more(install: Install, overlay: str) -> None:
    installation = await install(overlay)
    await installation.apply()
    needed = rights_of(objects_of(overlay))
    others = (rights_of(objects_of("apply")) | NEVER) - needed

    assert set() == await installation.refused(needed)
    assert others == await installation.refused(others)


async def test_deleting_what_bears_the_label_of_acting_leaves_the_rights_to_recommend(
    cluster: Cluster, install: Install
) -> None:
    installation = await install("apply")
    await installation.apply()
    label = "app.kubernetes.io/component=acting"
    kinds = "clusterroles,clusterrolebindings,roles,rolebindings"
    names = await cluster.kubectl("-n", installation.home, "get", kinds, "-l", label, "-o", "name")
    ours = [name for name in names.split() if name.endswith(installation.suffix)]
    await cluster.kubectl("-n", installation.home, "delete", *ours)
    kept = rights_of(objects_of("recommend"))

    assert set() == await installation.refused(kept)
    assert rights_of(objects_of("apply")) - kept == await installation.refused(
        rights_of(objects_of("apply")) - kept
    )


async def test_under_the_rights_to_recommend_a_service_leads_and_writes_its_lease_alone(
    cluster: Cluster, room: Room, install: Install
) -> None:
    installation = await install("recommend")
    await installation.apply()
    settings = {"AUTOSCALER_LEADER_ELECTION": "true", "AUTOSCALER_NAMESPACE": installation.home}
    async with running_service(
        cluster, await installation.kubeconfig(), name=f"service-{room.namespace}", environment=settings
    ) as service:
        ready = await service.until_ready()
        await eventually(
            lambda: _writes(installation),
            lambda seen: "update leases 200" in seen,
            what="a renewal of the lease",
        )

    assert [line for line in ready.splitlines() if line.startswith("[-]")] == []
    assert installation.writes() == ["create leases 201", "update leases 200"]
    # Kinds that the server does not have are not asked for; all else that is granted was needed.
    granted = {right for right in kinds_and_verbs(objects_of("recommend")) if right[0] not in ABSENT}
    assert granted == installation.used()
    assert service.component.exit_code == 0


async def test_under_the_rights_of_one_kind_of_action_that_kind_is_done_and_others_are_recommended(
    room: Room, install: Install
) -> None:
    installation = await install("apply-right-size-only")
    await installation.apply()
    await room.add_nodes(2, boards=4)
    await room.cluster.exporter.declare([half_used(room), lightly_used(room, name="many")])
    await room.cluster.apply(
        [room.deployment("app", boards=2), room.deployment("many", boards=1, replicas=3)]
    )
    await room.until_running(4)
    settings = {
        "AUTOSCALER_NAMESPACE": installation.home,
        "AUTOSCALER_MODE": "recommend",
        "AUTOSCALER_MODES_RIGHT_SIZE": "apply",
    }
    kubeconfig = await installation.kubeconfig()
    async with acting(room, kubeconfig, name=f"sizing-{room.namespace}", environment=settings) as actor:
        await actor.until_state("app", "verified")
        held = await actor.service.until_reason(room, "many", Reason.SCALED_IN)

    assert boards_of(await live(room, "deployment", "app")) == 1
    assert (await live(room, "deployment", "many"))["spec"]["replicas"] == 3
    assert held.action is not None
    assert held.action.held_by == (Reason.MODE_RECOMMEND,)
    # A 422 may be among them: a patch that tests what it takes away is sent again once controllers have moved it.
    assert [one for one in installation.writes() if one.endswith(" 403")] == []
    assert {one.rpartition(" ")[0] for one in installation.writes()} == {
        "create configmaps",
        "create leases",
        "patch deployments",
        "update configmaps",
        "update leases",
    }
    granted = kinds_and_verbs(objects_of("apply-right-size-only"))
    assert installation.used() - granted == set()
    # Nothing was stuck, and no StatefulSet and no CronJob was there to be changed.
    assert {right for right in granted - installation.used() if right[0] not in ABSENT} == {
        ("", "pods", "get"),
        ("", "pods/eviction", "create"),
        ("apps", "statefulsets", "get"),
        ("apps", "statefulsets", "patch"),
        ("batch", "cronjobs", "get"),
        ("batch", "jobs", "get"),
        ("batch", "cronjobs", "patch"),
        ("events.k8s.io", "events", "create"),
    }


async def _writes(installation: Installation) -> list[str]:
    return installation.writes()


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_what_is_built_grants_what_the_files_say(overlay: str) -> None:
    assert table(rights_of(objects_of(overlay))) == table(rights_of(rendered(OVERLAYS[overlay])))


@pytest.mark.parametrize("mode", ["recommend", "apply"])
def test_the_rights_of_a_mode_bring_nothing_that_runs(mode: Any) -> None:
    kinds = {item["kind"] for item in shipped_rights(mode)}

    assert {"Namespace", "ServiceAccount"} < kinds
    assert kinds & {"Deployment", "Service", "ConfigMap", "Pod"} == set()
    assert rights_of(shipped_rights(mode)) == rights_of(rendered(OVERLAYS[mode]))


ABSENT = frozenset({"karpenter.sh", "kueue.x-k8s.io"})
"""Groups that the devcluster has not."""


def kinds_and_verbs(objects: Any) -> set[tuple[str, str, str]]:
    """What is granted, wherever and under whatever name."""
    return {(right.group, right.resource, right.verb) for right in rights_of(objects)}


NEVER = {
    Right("", "", "pods", "", "delete"),
    Right("", "", "pods", "", "create"),
    Right("", "", "pods", "", "update"),
    Right("", "", "pods/exec", "", "create"),
    Right("", "", "pods/ephemeralcontainers", "", "patch"),
    Right("", "", "secrets", "", "get"),
    Right("", "", "secrets", "", "list"),
    Right(NAMESPACE, "", "secrets", "", "get"),
    Right("", "", "configmaps", "", "get"),
    Right("", "", "configmaps", "", "create"),
    Right("", "", "nodes", "", "patch"),
    Right("", "", "nodes/proxy", "", "get"),
    Right("", "", "serviceaccounts", "", "impersonate"),
    Right(NAMESPACE, "", "serviceaccounts/token", ACCOUNT, "create"),
    Right("", "", "resourcequotas", "", "patch"),
    Right("", "apps", "deployments", "", "update"),
    Right("", "apps", "deployments", "", "delete"),
    Right("", "apps", "deployments", "", "create"),
    Right("", "apps", "daemonsets", "", "patch"),
    Right("", "apps", "replicasets", "", "patch"),
    Right("", "batch", "jobs", "", "create"),
    Right("", "batch", "jobs", "", "delete"),
    Right("", "policy", "poddisruptionbudgets", "", "patch"),
    Right("", "rbac.authorization.k8s.io", "clusterroles", "", "bind"),
    Right("", "rbac.authorization.k8s.io", "clusterroles", "", "escalate"),
    Right("", "coordination.k8s.io", "leases", "", "update"),
    Right(NAMESPACE, "coordination.k8s.io", "leases", "another", "update"),
    Right(NAMESPACE, "coordination.k8s.io", "leases", "gpu-autoscaler", "delete"),
    Right(NAMESPACE, "", "configmaps", "another", "get"),
    Right(NAMESPACE, "", "configmaps", "gpu-autoscaler-policy", "update"),
    Right(NAMESPACE, "", "configmaps", "gpu-autoscaler-control", "update"),
    Right(NAMESPACE, "", "configmaps", "gpu-autoscaler-ledger-0", "delete"),
}
"""Nothing that any mode may do."""
