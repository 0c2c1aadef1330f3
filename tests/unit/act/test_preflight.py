"""What ends an act before anything is written down."""

from typing import Any

import pytest

from autoscaler.act.live import LivePod
from autoscaler.act.preflight import unfit_beneficiary, unfit_leaving, unfit_victim
from autoscaler.act.requests import DELETION_COST, LOWERED_COST
from autoscaler.model.plan import PodRef
from autoscaler.model.reasons import Reason

POD = PodRef("team", "web-1", "uid-web-1")


def pod(**changes: Any) -> LivePod:
    return LivePod(**{"uid": "uid-web-1", "node": "node-1", "phase": "Running", **changes})


@pytest.mark.parametrize(
    ("live", "kind"),
    [
        (pod(), None),
        (pod(phase="Pending"), None),
        (None, "gone"),
        (pod(deleting=True), "gone"),
        (pod(phase="Succeeded"), "gone"),
        (pod(phase="Failed"), "gone"),
        (pod(node="", phase="Pending"), "conflict"),
    ],
)
def test_only_a_pod_that_holds_something_is_evicted(live: LivePod | None, kind: str | None) -> None:
    found = unfit_victim(POD, live)

    assert (found.kind if found is not None else None) == kind


@pytest.mark.parametrize(
    ("live", "kind"),
    [
        (pod(node=""), None),
        (None, "conflict"),
        (pod(node="", deleting=True), "conflict"),
        (pod(node="node-9"), "conflict"),
    ],
)
def test_room_is_made_only_for_a_pod_that_still_waits(live: LivePod | None, kind: str | None) -> None:
    found = unfit_beneficiary(POD, live)

    assert (found.kind if found is not None else None) == kind


@pytest.mark.parametrize(
    ("cost", "reason"),
    [
        (None, None),
        (LOWERED_COST, None),
        ("-1", None),
        ("0", Reason.OTHER_OWNER),
        ("-0", Reason.OTHER_OWNER),
        ("100", Reason.OTHER_OWNER),
        ("", Reason.OTHER_OWNER),
        ("-", Reason.OTHER_OWNER),
        ("--1", Reason.OTHER_OWNER),
        ("-1.5", Reason.OTHER_OWNER),
        ("-\u0661", Reason.OTHER_OWNER),
    ],
)
def test_an_owners_cost_that_would_keep_the_pod_is_not_overridden(
    cost: str | None, reason: Reason | None
) -> None:
    found = unfit_leaving({POD: pod(annotations={} if cost is None else {DELETION_COST: cost})})

    assert (found.reason if found is not None else None) is reason


def test_no_pod_is_named_and_nothing_is_in_the_way() -> None:
    assert unfit_leaving({}) is None


@pytest.mark.parametrize("live", [None, pod(deleting=True)])
def test_a_pod_that_left_already_leaves_no_second_time(live: LivePod | None) -> None:
    found = unfit_leaving({PodRef("team", "web-0", "u"): pod(), POD: live})

    assert found is not None
    assert found.kind == "conflict"
    assert "team/web-1" in found.detail
