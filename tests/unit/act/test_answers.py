"""One error, one meaning; what may have been carried out is never called refused."""

import pytest

from autoscaler.act.answers import classify, not_prepared, nothing_taken
from autoscaler.kube.errors import (
    AccessError,
    ApiError,
    Cause,
    Conflict,
    Details,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedBody,
    Unreachable,
)
from autoscaler.model.reasons import Reason

WRONG_UID = Details(causes=[Cause(field="metadata.uid", reason="FieldValueInvalid")])
BUDGET = Details(causes=[Cause(reason="DisruptionBudget", message="pdb a needs 2")])


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (Unauthorized(401), "refused", Reason.FORBIDDEN),
        (Forbidden(403), "refused", Reason.FORBIDDEN),
        (Forbidden(403, message="exceeded quota: a"), "refused", Reason.QUOTA_SHORT),
        (NotFound(404), "gone", None),
        (Conflict(409, message="the object has been modified"), "conflict", None),
        (Conflict(409, message="Precondition failed: UID in precondition: a"), "gone", None),
        (Conflict(409, message="the UID in the precondition (a) does not match"), "gone", None),
        (Invalid(422, message="fluid.example is immutable"), "refused", Reason.NO_LEVER),
        (Invalid(422, details=WRONG_UID), "gone", None),
        (TooManyRequests(429), "refused", None),
        (TooManyRequests(429, details=BUDGET), "refused", Reason.DISRUPTION_BUDGET),
        (
            ServerError(500, message="This pod has more than one PodDisruptionBudget, which ..."),
            "refused",
            Reason.DISRUPTION_BUDGET,
        ),
        (ServerError(500, message="updating PodDisruptionBudget a: timed out"), "unknown", None),
        (ServerError(504), "unknown", None),
        (UnexpectedBody(200), "unknown", None),
        (Unreachable("timeout", ""), "unknown", None),
        (Unreachable("cut", ""), "unknown", None),
        (Unreachable("network", ""), "unknown", None),
        (Unreachable("refused", ""), "refused", None),
        (Unreachable("dns", ""), "refused", None),
        (Unreachable("tls", ""), "refused", None),
        (AccessError("no token"), "refused", None),
        (ApiError(400), "refused", None),
    ],
)
def test_an_error_of_an_act_has_one_meaning(error: KubeError, kind: str, reason: Reason | None) -> None:
    found = classify(error)

    assert (found.kind, found.reason) == (kind, reason)


def test_the_words_of_a_budget_are_what_a_person_needs() -> None:
    assert classify(TooManyRequests(429, message="Cannot evict", details=BUDGET)).detail == "pdb a needs 2"


def test_the_wait_that_the_server_names_is_handed_on() -> None:
    assert classify(TooManyRequests(429, retry_after_s=10.0)).retry_after_s == 10.0


def test_before_an_act_is_sent_nothing_is_unknown() -> None:
    assert nothing_taken(ServerError(500)).kind == "refused"
    assert nothing_taken(Conflict(409)).kind == "conflict"


@pytest.mark.parametrize(
    "error", [NotFound(404), Invalid(422), Invalid(422, details=WRONG_UID), Conflict(409)]
)
def test_a_preparation_that_met_another_world_means_think_again(error: KubeError) -> None:
    assert not_prepared(error).kind == "conflict"


def test_a_preparation_without_the_right_is_refused() -> None:
    assert not_prepared(Forbidden(403)).reason is Reason.FORBIDDEN
