"""Every answer that is not what was asked for has one type."""

import json

import pytest

from autoscaler.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedBody,
    Unreachable,
    decode_status,
    error_from_response,
    error_from_status,
)

pytestmark = pytest.mark.unit

BUDGET_REFUSAL = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "reason": "TooManyRequests",
    "details": {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget web needs 2 healthy pods and has 2",
            }
        ]
    },
    "code": 429,
}


def status_body(code: int, reason: str = "", message: str = "no", **details: object) -> bytes:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return json.dumps({**body, "details": details or None}).encode()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ServerError),
        (503, ServerError),
        (599, ServerError),
        (400, ApiError),
        (418, ApiError),
    ],
)
def test_a_status_code_has_one_type(code: int, expected: type[ApiError]) -> None:
    error = error_from_response(code, status_body(code, "Reason", "words"))

    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, "Reason", "words")


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad gateway</html>", b"\xff\xfe", b'{"kind":"PodList"}', b"null"]
)
def test_a_body_of_any_kind_still_gives_the_type_of_its_code(body: bytes) -> None:
    error = error_from_response(503, body)

    assert type(error) is ServerError
    assert error.reason == ""


def test_a_429_of_a_disruption_budget_is_an_answer_and_not_retried() -> None:
    error = error_from_response(429, json.dumps(BUDGET_REFUSAL).encode())

    assert isinstance(error, TooManyRequests)
    assert error.from_disruption_budget
    assert not error.retryable


def test_a_429_of_priority_and_fairness_is_overload_and_retried_when_it_says() -> None:
    error = error_from_response(429, b"Too many requests, please try again later.", retry_after="1")

    assert isinstance(error, TooManyRequests)
    assert not error.from_disruption_budget
    assert error.retryable
    assert error.retry_after_s == 1.0


def test_retry_after_is_also_read_from_the_status_details() -> None:
    assert error_from_response(429, status_body(429, retryAfterSeconds=10)).retry_after_s == 10.0


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2026 07:28:00 GMT", "", "-1", "soon", "1.5"])
def test_a_retry_after_that_is_no_number_of_seconds_is_ignored(header: str) -> None:
    assert error_from_response(503, b"", retry_after=header).retry_after_s is None


def test_null_details_and_causes_are_no_causes() -> None:
    assert error_from_response(422, status_body(422)).causes == ()
    assert error_from_response(422, status_body(422, causes=None)).causes == ()


def test_a_failure_status_inside_a_200_has_the_type_of_its_own_code() -> None:
    status = decode_status(status_body(403, "Forbidden"))

    assert status is not None
    assert type(error_from_status(status)) is Forbidden


@pytest.mark.parametrize("body", [b'{"kind":"Status","status":"Success"}', b'{"kind":"Status"}'])
def test_a_status_without_a_failure_code_is_an_unexpected_body(body: bytes) -> None:
    status = decode_status(body)

    assert status is not None
    assert type(error_from_status(status)) is UnexpectedBody


def test_a_tls_fault_is_not_cured_by_asking_again() -> None:
    assert not Unreachable("tls", "certificate has expired").retryable
    assert Unreachable("timeout", "").retryable


@pytest.mark.parametrize(
    "error", [Unauthorized(401), Forbidden(403), NotFound(404), Conflict(409), Invalid(422), Gone(410)]
)
def test_an_answer_about_us_or_the_object_is_not_retried(error: ApiError) -> None:
    assert not error.retryable


def test_long_messages_are_cut() -> None:
    assert len(error_from_response(500, b"x" * 100_000).message) < 1_000
