"""An Event is cut to what the API server takes, which counts bytes."""

from typing import Any

import pytest

from autoscaler.kube.events import CONTROLLER, event_object, event_path


def event(**fields: str) -> dict[str, Any]:
    words = {"reason": "RightSized", "action": "RightSize", "note": "2 -> 1", "instance": "pod-a"} | fields
    return event_object(
        api_version="apps/v1",
        kind="Deployment",
        namespace="team",
        name="web",
        uid="uid-web",
        now_ms=1_800_000_000_123,
        **words,
    )


def test_an_event_says_who_did_what_to_whom_and_when() -> None:
    made = event()

    assert made["eventTime"] == "2027-01-15T08:00:00.123000Z"
    assert (made["reportingController"], made["reportingInstance"]) == (CONTROLLER, "pod-a")
    assert (made["action"], made["reason"], made["note"]) == ("RightSize", "RightSized", "2 -> 1")
    assert made["type"] == "Normal"
    assert made["regarding"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "team",
        "name": "web",
        "uid": "uid-web",
    }


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("x" * 1025, "x" * 1024),
        ("ü" * 600, "ü" * 512),
        ("x" + "ü" * 600, "x" + "ü" * 511),
        ("😀" * 300, "😀" * 256),
        ("a\ud800b", "a?b"),
    ],
)
def test_a_note_is_cut_to_1024_bytes_between_characters(note: str, expected: str) -> None:
    assert event(note=note)["note"] == expected


@pytest.mark.parametrize(
    ("field", "key"), [("reason", "reason"), ("action", "action"), ("instance", "reportingInstance")]
)
def test_words_are_cut_to_128_bytes(field: str, key: str) -> None:
    assert event(**{field: "ü" * 100})[key] == "ü" * 64


def test_an_instance_without_a_name_is_the_controller() -> None:
    assert event(instance="")["reportingInstance"] == CONTROLLER


def test_a_namespace_is_one_segment_of_the_path() -> None:
    assert event_path("a/b") == "/apis/events.k8s.io/v1/namespaces/a%2Fb/events"
