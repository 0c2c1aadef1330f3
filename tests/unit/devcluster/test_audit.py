from pathlib import Path
from typing import Any

import pytest

from devcluster.audit import (
    AuditEvent,
    Reader,
    describe,
    read_events,
    rights_used_by,
    service_account_user,
    writes_by,
)

pytestmark = pytest.mark.unit


def event(
    user: str = "system:serviceaccount:ns:sa", resource: str = "deployments", **changes: Any
) -> AuditEvent:
    return {
        "user": {"username": user},
        "verb": "patch",
        "objectRef": {"resource": resource, "namespace": "ns", "name": "app"},
        "responseStatus": {"code": 200},
    } | changes


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text('{"verb": "patch"}\n{"verb": "del')

    assert read_events(path) == [{"verb": "patch"}]


def test_a_log_that_does_not_exist_yet_has_no_events(tmp_path: Path) -> None:
    assert read_events(tmp_path / "audit.log") == []


def test_a_reader_tells_each_event_once_and_a_line_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    reader = Reader(path)
    told = [reader.new_events()]
    for text in ('{"n": 1}\n{"n"', ": 2}\n", ""):
        with path.open("a") as log:
            log.write(text)
        told.append(reader.new_events())

    assert told == [[], [{"n": 1}], [{"n": 2}], []]


def test_only_the_writes_of_the_asked_account_count_and_questions_about_rights_do_not() -> None:
    wanted = event()
    events = [wanted, event(user="someone"), event(resource="selfsubjectaccessreviews"), event(verb="watch")]

    assert writes_by(events, service_account_user("ns", "sa")) == [wanted]


def test_a_right_is_used_by_what_was_allowed_reads_included() -> None:
    evicted = {"resource": "pods", "subresource": "eviction", "namespace": "ns", "name": "p"}
    events = [
        event(verb="watch", objectRef={"resource": "deployments", "apiGroup": "apps"}),
        event(verb="create", objectRef=evicted, responseStatus={"code": 429}),
        event(verb="get", resource="secrets", responseStatus={"code": 403}),
        event(verb="get", objectRef=None),
        event(user="someone"),
    ]

    assert rights_used_by(events, service_account_user("ns", "sa")) == {
        ("apps", "deployments", "watch"),
        ("", "pods/eviction", "create"),
    }


def test_a_write_is_told_in_a_line() -> None:
    refused = event(objectRef={"resource": "pods", "subresource": "eviction", "namespace": "ns", "name": "p"})

    assert describe(refused) == "patch pods/eviction ns/p 200"
