"""Watch lines become events; what cannot be read is an error that names its object."""

import json

import pytest

from autoscaler.kube.errors import Gone, ServerError, UnexpectedBody
from autoscaler.kube.kinds import LIMIT_RANGE, POD, PRIORITY_CLASS, Kind
from autoscaler.kube.watch import decode_events

pytestmark = pytest.mark.unit


def line(event_type: str, obj: object) -> bytes:
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"


def pod(name: str) -> dict[str, object]:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "ml", "resourceVersion": "5"}}


def status(code: int, reason: str) -> dict[str, object]:
    return {
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": "m",
    }


def names(blob: bytes) -> list[str]:
    return [event.object.metadata.name for events in decode_events(POD, blob) for event in events]


def test_all_lines_of_a_chunk_are_decoded_in_order() -> None:
    assert names(line("ADDED", pod("a")) + line("MODIFIED", pod("b"))) == ["a", "b"]


def test_blank_lines_are_skipped() -> None:
    assert names(b"\n" + line("ADDED", pod("a")) + b"\n") == ["a"]


@pytest.mark.parametrize("kind", [POD, PRIORITY_CLASS, LIMIT_RANGE], ids=lambda kind: kind.name)
def test_an_error_event_is_the_error_it_carries_for_kinds_with_and_without_status(kind: Kind) -> None:  # type: ignore[type-arg]
    with pytest.raises(Gone):
        list(decode_events(kind, line("ERROR", status(410, "Expired"))))


def test_events_before_an_error_are_delivered_first() -> None:
    batches = decode_events(POD, line("ADDED", pod("a")) + line("ERROR", status(500, "InternalError")))

    assert [event.object.metadata.name for event in next(batches)] == ["a"]
    with pytest.raises(ServerError):
        next(batches)


def test_an_error_event_without_code_is_still_an_error() -> None:
    with pytest.raises(UnexpectedBody) as caught:
        list(decode_events(POD, line("ERROR", {"kind": "Status", "reason": "Expired"})))

    assert caught.value.expired


@pytest.mark.parametrize(
    "blob",
    [
        b"{\n",
        b"<html>\n",
        b"null\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":null}\n',
        b"\xff\xff\n",
        line("SURPRISE", pod("a")),
    ],
)
def test_an_unreadable_line_is_an_unexpected_body(blob: bytes) -> None:
    with pytest.raises(UnexpectedBody, match="unreadable watch event"):
        list(decode_events(POD, blob))


def test_an_unreadable_object_is_named() -> None:
    broken = {**pod("a"), "spec": {"containers": "many"}}

    with pytest.raises(UnexpectedBody, match="of ml/a: "):
        list(decode_events(POD, line("ADDED", broken)))
