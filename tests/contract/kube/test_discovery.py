"""What exists and what we may read is named per kind, never guessed."""

from dataclasses import replace
from typing import Any

import pytest

from autoscaler.kube.discovery import Absent, Available, Denied, discover
from autoscaler.kube.errors import ServerError
from autoscaler.kube.kinds import CRON_JOB, DEPLOYMENT, DEVICE_CLASS, KINDS, POD, RESOURCE_CLAIM, Kind

pytestmark = pytest.mark.contract

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def aggregated(*kinds: Kind[Any]) -> dict[str, Any]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(f"{kind.group}|{kind.version}", []).append(kind.plural)
    return {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": key.split("|")[0], "creationTimestamp": None},
                "versions": [
                    {"version": key.split("|")[1], "resources": [{"resource": plural} for plural in plurals]}
                ],
            }
            for key, plurals in groups.items()
        ],
    }


@pytest.fixture
def server(api: Any, answers: Any) -> Any:
    """A server with all kinds that allows everything, told in aggregated form."""

    def script(*kinds: Kind[Any], denied: tuple[tuple[str, str], ...] = ()) -> None:
        async def review(request: Any) -> Any:
            attributes = (await request.json())["spec"]["resourceAttributes"]
            refused = (attributes["verb"], attributes["resource"]) in denied
            status = {"allowed": not refused, "reason": "no rule" if refused else ""}
            return await answers.json({"kind": "SelfSubjectAccessReview", "status": status}, status=201)(
                request
            )

        api.on("/version", answers.json({"major": "1", "gitVersion": "v1.36.3"}))
        api.on("/api", answers.json(aggregated(*(kind for kind in kinds if not kind.group))))
        api.on("/apis", answers.json(aggregated(*(kind for kind in kinds if kind.group))))
        api.on(REVIEWS, review)

    return script


async def test_every_kind_that_exists_and_may_be_read_is_available(connect: Any, server: Any) -> None:
    server(*KINDS.values())
    async with connect() as session:
        found = await discover(session, KINDS.values())

    assert found.server_version == "v1.36.3"
    assert found.kinds == {name: Available(name) for name in KINDS}
    assert {"v1/pods", "apps/v1/deployments"} <= found.resources


async def test_discovery_asks_for_the_aggregated_form(api: Any, connect: Any, server: Any) -> None:
    server(POD)
    async with connect() as session:
        await discover(session, [POD])
    roots = [request for request in api.requests if request.path in {"/api", "/apis"}]

    assert all("as=APIGroupDiscoveryList" in request.headers["Accept"] for request in roots)
    assert len(api.requests) == 5


async def test_a_kind_the_server_does_not_have_is_absent_and_not_reviewed(
    api: Any, connect: Any, server: Any
) -> None:
    server(POD)
    async with connect() as session:
        found = await discover(session, [POD, CRON_JOB])

    assert found.kinds["CronJob"] == Absent("CronJob", "the server has no cronjobs in batch/v1")
    assert sum(request.path == REVIEWS for request in api.requests) == 2


async def test_a_kind_that_is_served_at_an_older_version_only_is_read_there(
    api: Any, connect: Any, server: Any
) -> None:
    older = replace(RESOURCE_CLAIM, version="v1beta1", older=())
    server(POD, older)
    async with connect() as session:
        found = await discover(session, [POD, RESOURCE_CLAIM, DEVICE_CLASS])
    versions = {body["spec"]["resourceAttributes"]["version"] for body in api.bodies if body}

    assert found.kinds["ResourceClaim"] == Available("ResourceClaim")
    assert found.served["ResourceClaim"].path == older.path
    assert found.kinds["DeviceClass"] == Absent(
        "DeviceClass",
        "the server has no deviceclasses in resource.k8s.io/v1 or resource.k8s.io/v1beta2 or resource.k8s.io/v1beta1",
    )
    assert versions == {"v1", "v1beta1"}


async def test_a_denied_verb_is_named_with_the_servers_reason(connect: Any, server: Any) -> None:
    server(POD, DEPLOYMENT, denied=(("watch", "pods"),))
    async with connect() as session:
        found = await discover(session, [POD, DEPLOYMENT])

    assert found.kinds["Pod"] == Denied("Pod", "may not watch (no rule) pods")
    assert found.kinds["Deployment"] == Available("Deployment")


async def test_where_reviews_are_forbidden_a_list_of_one_settles_it(
    api: Any, answers: Any, connect: Any, server: Any
) -> None:
    server(POD, DEPLOYMENT)
    api.on(REVIEWS, answers.failure(403, "Forbidden"))
    api.on(POD.path, answers.pods())
    api.on(DEPLOYMENT.path, answers.failure(403, "Forbidden", message="deployments is forbidden"))
    async with connect() as session:
        found = await discover(session, [POD, DEPLOYMENT])

    assert found.kinds["Pod"] == Available("Pod")
    assert isinstance(found.kinds["Deployment"], Denied)
    assert "deployments is forbidden" in found.kinds["Deployment"].reason


async def test_a_server_without_aggregated_discovery_is_asked_group_by_group(
    api: Any, answers: Any, connect: Any, server: Any
) -> None:
    server()
    api.on("/api", answers.json({"kind": "APIVersions", "versions": ["v1"]}))
    groups = [
        {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
        {
            "name": "broken.example.com",
            "versions": [{"groupVersion": "broken.example.com/v1", "version": "v1"}],
        },
    ]
    api.on("/apis", answers.json({"kind": "APIGroupList", "groups": groups}))
    api.on(
        "/api/v1",
        answers.json({"kind": "APIResourceList", "resources": [{"name": "pods"}, {"name": "pods/status"}]}),
    )
    api.on("/apis/apps/v1", answers.json({"kind": "APIResourceList", "resources": [{"name": "deployments"}]}))
    async with connect() as session:
        found = await discover(session, [POD, DEPLOYMENT, CRON_JOB])

    assert found.kinds["Pod"] == Available("Pod")
    assert found.kinds["Deployment"] == Available("Deployment")
    assert isinstance(found.kinds["CronJob"], Absent)
    assert not any("broken" in request.path for request in api.requests)


async def test_a_server_that_cannot_be_asked_is_an_error_and_no_answer(
    api: Any, answers: Any, connect: Any, server: Any
) -> None:
    server(POD)
    api.on("/apis", answers.failure(503))
    async with connect() as session:
        with pytest.raises(ServerError):
            await discover(session, [POD])
