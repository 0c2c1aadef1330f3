"""Each mode has the rights that its requests need, and no other."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from autoscaler.act import control, ledger, shards
from autoscaler.act.live import LivePod, LiveWorkload
from autoscaler.act.requests import (
    Request,
    change_request,
    cost_request,
    disown_request,
    evict_request,
    nominate_request,
    uncost_request,
    unnominate_request,
)
from autoscaler.kube import KINDS
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, PodRef, ThroughRef
from autoscaler.model.reasons import Reason
from autoscaler.observe.strict_yaml import load_yaml
from autoscaler.service.wiring import LEASE
from tests.unit.manifests.rights import Right, faults, rights_of, table
from tests.unit.manifests.sources import K8S, OVERLAYS, ROOT, objects_of

EXPECTED = ROOT / "tests/unit/manifests/expected_rights.yaml"
HOME = "gpu-autoscaler"
POD = PodRef("team", "web-0", "uid-0")
GROUPS = {"Deployment": "apps", "StatefulSet": "apps", "CronJob": "batch"}
THROUGH = {"Job": ThroughRef("job-web", "uid-workload")}
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
ACTS = ("right-size", "scale-in", "make-room", "deactivate", "bounds")


def right_of(request: Request) -> Right:
    """What RBAC asks of a request, by the server's own reading of a path."""
    parts = urlsplit(request.path).path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    _, _, resource, _, *subresource = rest
    return Right("", group, "/".join([resource, *subresource]), "", VERBS[request.verb])


def changes(kind: str, lever: Any, through: ThroughRef | None = None) -> list[Request]:
    """The change of a workload, and what follows it."""
    ref = WorkloadRef(GROUPS.get(kind, "batch"), kind, "team", "web")
    action = Action(
        id="a",
        method="right-size",
        reason=Reason.RIGHT_SIZED,
        lever=lever,
        target=ref,
        uid="uid",
        resource_version="1",
        resource="nvidia.com/gpu",
        container="main",
        before=2,
        after=1,
        saved_milli_boards=1000,
        because="",
        through=through or (None if lever == "scale" else THROUGH.get(kind)),
    )
    amounts = {"main": {"limits": {"nvidia.com/gpu": "2"}, "requests": {}}}
    live = LiveWorkload(ref=ref, uid="uid", resource_version="1", amounts=amounts, own_entries=(0,))
    disown = disown_request(action, live)
    assert disown is not None
    return [change_request(action, live), disown]


def requests_for(act: str) -> list[Request]:
    """Every changing request that acts of a kind, their repair and their undoing send."""
    match act:
        case "right-size":
            templates = [one for kind in GROUPS for one in changes(kind, "template")]
            return [*templates, evict_request(POD)]
        case "scale-in":
            scales = [one for kind in ("Deployment", "StatefulSet", "Job") for one in changes(kind, "scale")]
            return [*scales, cost_request(POD, LivePod(uid=POD.uid)), uncost_request(POD)]
        case "deactivate":
            return changes("Job", "deactivate")
        case "bounds":
            return changes("Deployment", "bounds", ThroughRef("web", "uid-hpa", "HorizontalPodAutoscaler"))
        case _:
            return [nominate_request(POD, "n"), unnominate_request(POD, "n"), evict_request(POD)]


def role(act: str) -> list[dict[str, Any]]:
    return [one for one in objects_of("apply") if one["metadata"]["name"] == f"gpu-autoscaler-{act}"]


def changing(objects: list[dict[str, Any]]) -> set[Right]:
    """Granted rights but those to read."""
    return {one for one in rights_of(objects) if one.verb != "get"}


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_a_mode_grants_what_the_reviewed_table_says(overlay: str) -> None:
    expected = load_yaml(EXPECTED.read_text())

    assert expected[overlay] == table(rights_of(objects_of(overlay)))


@pytest.mark.parametrize("act", ACTS)
def test_a_kind_of_action_has_the_rights_of_its_requests_and_no_other(act: str) -> None:
    assert {right_of(one) for one in requests_for(act)} == changing(role(act))


@pytest.mark.parametrize("act", ACTS)
def test_a_rehearsal_needs_the_same_rights(act: str) -> None:
    assert {right_of(one.rehearsed()) for one in requests_for(act)} == changing(role(act))


def test_every_kind_that_is_read_may_be_read_and_no_other() -> None:
    granted = rights_of(role("read"))

    assert {(kind.group, kind.plural) for kind in KINDS.values()} == {
        (one.group, one.resource) for one in granted
    }
    assert {"list", "watch"} == {one.verb for one in granted}


def test_only_what_has_a_lever_is_read_again_and_only_by_who_acts() -> None:
    again = {(one.group, one.resource) for one in rights_of(role("read-again"))}
    others = [*role("deactivate"), *role("bounds")]
    through = {(one.group, one.resource) for one in rights_of(others) if one.verb == "get"}
    asked = {
        (right.group, right.resource.partition("/")[0])
        for act in ACTS
        for one in requests_for(act)
        for right in [right_of(one)]
    }

    assert again | through == asked
    assert [
        one for one in rights_of(objects_of("recommend")) if one.verb == "get" and not one.namespace
    ] == []


def test_the_lease_is_the_only_one_that_may_be_written() -> None:
    written = {one for one in rights_of(role("own")) if one.verb != "create"}

    assert {
        Right(HOME, "coordination.k8s.io", "leases", LEASE, verb) for verb in ("get", "update")
    } == written


def test_the_ledger_is_its_shards_and_the_pause_cannot_be_lifted() -> None:
    kept = {
        Right(HOME, "", "configmaps", f"{shards.NAME}-{number}", verb)
        for number in range(ledger.SHARDS)
        for verb in ("get", "update")
    }
    pause = {Right(HOME, "", "configmaps", control.NAME, "get")}
    new = {Right(HOME, "", "configmaps", "", "create")}

    assert kept | pause | new == rights_of(role("ledger"))


def test_no_mode_but_apply_changes_anything_outside_its_namespace() -> None:
    outside = {one for one in rights_of(objects_of("recommend")) if not one.namespace}

    assert {"list", "watch"} == {one.verb for one in outside}


def test_everything_is_granted_to_the_one_account() -> None:
    subjects = [one for item in objects_of("apply") for one in item.get("subjects", [])]

    assert [{"kind": "ServiceAccount", "name": HOME, "namespace": HOME}] * len(subjects) == subjects
    assert len(subjects) == len(
        [one for one in objects_of("apply") if one["kind"] in {"Role", "ClusterRole"}]
    )


def test_every_component_is_in_the_overlay_that_applies_everything() -> None:
    included = {one["metadata"]["name"] for one in objects_of("apply")}

    assert {f"gpu-autoscaler-{folder.name}" for folder in (K8S / "components").iterdir()} <= included


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_no_role_reaches_too_far(overlay: str) -> None:
    roles = [one for one in objects_of(overlay) if one["kind"] in {"Role", "ClusterRole"}]

    assert {one["metadata"]["name"]: [] for one in roles} == {
        one["metadata"]["name"]: faults(one) for one in roles
    }


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]}, "grants every group"),
        ({"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}, "grants *"),
        ({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}, "grants *"),
        ({"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}, "grants delete"),
        ({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}, "grants secrets"),
        ({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}, "grants pods/exec"),
        ({"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}, "grants impersonate"),
        ({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, "grants URLs"),
    ],
)
def test_what_reaches_too_far_is_named(rule: dict[str, Any], fault: str) -> None:
    assert [fault] == faults({"rules": [rule]})
