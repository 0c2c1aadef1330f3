from typing import Any

import pytest

from devcluster.demo.proof import by_key, differing

pytestmark = pytest.mark.unit

KEY = ("Deployment", "ml", "server")


def stored(
    boards: int = 2, *, status: Any = None, spec: dict[str, Any] | None = None, **metadata: Any
) -> Any:
    containers = [{"name": "main", "resources": {"limits": {"gpu": str(boards)}}}]
    return {
        "metadata": {"namespace": "ml", "name": "server", "uid": "u1"} | metadata,
        "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}} | (spec or {}),
        "status": status or {},
    }


def compared(before: Any, *after: Any) -> dict[Any, list[str]]:
    return differing(by_key("Deployment", [before]), by_key("Deployment", after))


def test_what_the_server_and_the_controllers_write_is_no_difference() -> None:
    after = stored(
        status={"replicas": 1},
        resourceVersion="9",
        generation=3,
        managedFields=[{"manager": "x"}],
        creationTimestamp="2026-01-01T00:00:00Z",
        annotations={"deployment.kubernetes.io/revision": "3"},
    )

    assert compared(stored(), after) == {}


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (stored(1), "spec.template.spec.containers[0].resources.limits.gpu: 2 -> 1"),
        (stored(spec={"replicas": 3}), "spec.replicas: 1 -> 3"),
        (stored(spec={"paused": True}), "spec.paused: nothing -> True"),
        (stored(annotations={"note": "x"}), "annotations.note: nothing -> x"),
        (stored(labels={"team": "x"}), "labels.team: nothing -> x"),
        (stored(ownerReferences=[{"uid": "o"}]), "ownerReferences: [] -> [{'uid': 'o'}]"),
        (stored(uid="u2"), "uid: u1 -> u2"),
    ],
)
def test_what_an_owner_wrote_is_compared_field_by_field(after: Any, line: str) -> None:
    assert compared(stored(), after) == {KEY: [line]}


def test_a_field_that_is_gone_is_a_difference() -> None:
    before = stored(spec={"paused": True})

    assert compared(before, stored()) == {KEY: ["spec.paused: True -> nothing"]}


def test_an_object_that_is_gone_is_a_difference() -> None:
    (line,) = compared(stored())[KEY]

    assert line.startswith("the object: ")
    assert line.endswith("-> nothing")


def test_an_object_that_came_later_is_none() -> None:
    assert compared(stored(), stored(), stored(name="helper")) == {}


def test_a_container_more_is_a_difference() -> None:
    after = stored()
    after["spec"]["template"]["spec"]["containers"].append({"name": "sidecar"})

    assert list(compared(stored(), after)) == [KEY]
