from dataclasses import replace

import pytest
from build import Spec, cluster

from autoscaler.model.snapshot import KindAccess
from autoscaler.observe.strict_yaml import load_yaml
from autoscaler.service.doctor.gathered import Right, ServerFacts
from autoscaler.service.doctor.rights import rights_needed
from autoscaler.service.settings import load_settings
from tests.unit.manifests.rights import Right as Granted
from tests.unit.manifests.rights import table
from tests.unit.manifests.sources import ROOT
from tests.unit.service.doctor.examined import allowed, finding, policy, seen, server

EXPECTED = load_yaml((ROOT / "tests/unit/manifests/expected_rights.yaml").read_text())
SETTINGS = load_settings({})
EVENTS = load_settings({"AUTOSCALER_EVENTS": "true"})


def lines(rights: tuple[Right, ...]) -> set[str]:
    """One line a verb, as the reviewed table has it."""
    return {
        line
        for one in rights
        for line in table([Granted(one.namespace, one.group, one.resource, one.name, one.verb)])
    }


def granted(mode: str) -> set[str]:
    """The reviewed table, one line a verb."""
    return {
        f"{where}: {verb}"
        for where, verbs in (line.rsplit(": ", 1) for line in EXPECTED[mode])
        for verb in verbs.split(", ")
    }


@pytest.mark.parametrize(
    ("mode", "modes"),
    [
        ("recommend", {"default": "recommend"}),
        ("apply", {"default": "apply"}),
        ("apply-right-size-only", {"default": "recommend", "rightSize": "apply"}),
    ],
)
def test_what_is_asked_for_is_what_the_manifests_grant(mode: str, modes: dict[str, str]) -> None:
    settings = SETTINGS if mode == "recommend" else EVENTS
    rules = policy(modes=modes, methods={"autoscalerBounds": "agreed"})
    needed, given = lines(rights_needed(rules, settings)), granted(mode)

    assert needed - given == set()
    assert given - needed == set()


def test_autoscalers_are_only_patched_where_policy_lets_their_minimum_be_lowered() -> None:
    def asked(bounds: str) -> set[str]:
        rules = policy(modes={"scaleIn": "apply"}, methods={"autoscalerBounds": bounds})
        return {r.verb for r in rights_needed(rules, SETTINGS) if r.resource == "horizontalpodautoscalers"}

    assert asked("never") == {"list", "watch"}
    assert asked("agreed") == asked("always") == {"list", "watch", "get", "patch"}


def test_only_the_modes_that_act_ask_for_rights_to_act() -> None:
    seat = rights_needed(policy(modes={"makeRoom": "apply"}), SETTINGS)
    fewer = rights_needed(policy(modes={"idle": "apply"}), SETTINGS)

    assert {(r.resource, r.verb) for r in seat if r.verb == "patch"} == {("pods/status", "patch")}
    assert {r.resource for r in fewer if r.verb == "patch"} == {
        *("deployments", "deployments/scale", "statefulsets", "statefulsets/scale", "pods", "jobs"),
    }


def test_without_election_no_lease_is_asked_for() -> None:
    alone = load_settings({"AUTOSCALER_LEADER_ELECTION": "false"})

    assert not [r for r in rights_needed(policy(), alone) if r.resource == "leases"]


def test_missing_rights_are_named_with_the_rules_that_grant_them() -> None:
    no = {"is_allowed": False}
    reviews = (
        allowed("", "pods", "list"),
        allowed("", "resourcequotas", "list", **no),
        allowed("", "resourcequotas", "watch", **no),
        allowed("apps", "deployments", "patch", **no),
        allowed("apps", "statefulsets", "patch", **no),
        allowed("", "configmaps", "get", namespace="gpu", name="ledger-0", **no),
        allowed("", "configmaps", "get", namespace="gpu", name="ledger-1", **no),
    )
    found = finding(seen(server=server(reviews=reviews)), "D6")

    assert found.state == "failed"
    assert found.found == (
        "6 of 7 rights for mode recommend are missing (asked as system:serviceaccount:gpu-autoscaler:gpu-autoscaler): "
        "get configmaps (ledger-0, ledger-1) in namespace gpu, list/watch resourcequotas in all namespaces, "
        "patch deployments.apps, statefulsets.apps in all namespaces"
    )
    assert found.fix.split("\n") == [
        (
            '- {apiGroups: [""], resources: [configmaps], resourceNames: [ledger-0, ledger-1], verbs: [get]}'
            "  # ClusterRole read, read.yaml"
        ),
        '- {apiGroups: [""], resources: [resourcequotas], verbs: [list, watch]}  # ClusterRole read, read.yaml',
        "- {apiGroups: [apps], resources: [deployments, statefulsets], verbs: [patch]}  # ClusterRole read, read.yaml",
    ]


def test_a_right_on_a_kind_that_the_server_lacks_is_not_missing() -> None:
    absent = cluster(Spec(), access=(KindAccess("ResourceClaim", "absent", "no such API"),))
    review = allowed("resource.k8s.io", "resourceclaims", "list", kind="ResourceClaim", is_allowed=False)

    assert finding(seen(snapshot=absent, server=server(reviews=(review,))), "D6").state == "ok"


def test_a_server_that_cannot_be_asked_fails_here_and_stops_no_check_of_the_store() -> None:
    dead = replace(
        seen(server=ServerFacts(fault="API server unreachable (refused)")),
        snapshot=None,
        snapshot_fault="API server unreachable (refused)",
    )
    by_state: dict[str, list[str]] = {}
    for number in (f"D{n}" for n in range(1, 13)):
        by_state.setdefault(finding(dead, number).state, []).append(number)

    assert by_state == {
        "ok": ["D1", "D2", "D4", "D5", "D9"],
        "failed": ["D6"],
        "skipped": ["D3", "D7", "D8", "D10", "D11", "D12"],
    }
    assert finding(dead, "D6").found.endswith("API server unreachable (refused)")


def test_a_server_without_reviews_is_not_guessed_about() -> None:
    assert finding(seen(server=server(reviews=(), reviews_fault="403")), "D6").state == "skipped"
