"""The rules of the list+watch machine, one by one."""

from collections.abc import Callable
from typing import Any

import pytest

from autoscaler.kube import wire
from autoscaler.kube.errors import (
    Forbidden,
    Gone,
    KubeError,
    ServerError,
    TooManyRequests,
    UnexpectedBody,
    Unreachable,
)
from autoscaler.kube.kinds import Page, WatchEvent
from autoscaler.kube.reflect import (
    Apply,
    Delete,
    ListPage,
    OutOfTurnError,
    ReflectConfig,
    Reflection,
    ResetBegin,
    ResetCommit,
    ResetPage,
    StartWatch,
    Wait,
)

pytestmark = pytest.mark.unit


def machine(*, rng: Callable[[], float] = lambda: 0.5, **config: Any) -> Reflection[wire.Pod]:
    return Reflection(rng=rng, config=ReflectConfig(**config))


def waited_s(made: Reflection[wire.Pod], now_s: float) -> tuple[float, str]:
    """How long the machine wants to wait now, rounded to milliseconds, and why."""
    command = made.poll(now_s)
    assert isinstance(command, Wait)
    return round(command.delay_s, 3), command.reason


def pod(name: str, version: str) -> wire.Pod:
    return wire.Pod(metadata=wire.ObjectMeta(name=name, namespace="n", resource_version=version))


def page(*pods: wire.Pod, version: str = "10", token: str = "") -> Page[wire.Pod]:
    return Page(
        kind="PodList",
        metadata=wire.ListMeta(resource_version=version, continue_=token),
        items=list(pods),
    )


def event(event_type: str, name: str, version: str) -> WatchEvent[wire.Pod]:
    return WatchEvent(type=event_type, object=pod(name, version))  # type: ignore[arg-type]


def synced(**config: Any) -> Reflection[wire.Pod]:
    made = machine(**config)
    made.receive_page(page(), now_s=0.0)
    return made


def watching(**config: Any) -> Reflection[wire.Pod]:
    made = synced(**config)
    made.watch_opened(now_s=0.0)
    return made


def test_the_first_list_is_consistent_and_in_pages() -> None:
    assert machine().poll(0.0) == ListPage(limit=500, continue_token="")


def test_a_list_of_two_pages_becomes_visible_only_with_the_second() -> None:
    made = machine()
    first = made.receive_page(page(pod("a", "3"), token="t"), now_s=0.0)

    assert [type(delta) for delta in first] == [ResetBegin, ResetPage]
    assert not made.synced
    assert made.poll(0.0) == ListPage(limit=500, continue_token="t")

    second = made.receive_page(page(pod("b", "4")), now_s=0.0)

    assert [type(delta) for delta in second] == [ResetPage, ResetCommit]
    assert made.synced


def test_null_items_are_an_empty_list() -> None:
    deltas = machine().receive_page(
        Page(kind="PodList", metadata=wire.ListMeta(resource_version="5")), now_s=0.0
    )

    assert deltas == [ResetBegin(), ResetPage(()), ResetCommit("5")]


def test_the_watch_starts_at_the_version_of_the_list() -> None:
    command = synced().poll(0.0)

    assert isinstance(command, StartWatch)
    assert command.resource_version == "10"


def test_a_watch_is_dead_when_silent_for_its_timeout_and_five_seconds() -> None:
    command = synced().poll(0.0)

    assert isinstance(command, StartWatch)
    assert 261.0 <= command.timeout_s <= 290.0
    assert command.idle_timeout_s == command.timeout_s + 5.0


def test_watches_of_many_kinds_do_not_end_together() -> None:
    draws = iter((0.0, 0.99))
    timeouts = []
    for draw in draws:
        made = machine(rng=lambda draw=draw: draw)  # type: ignore[misc]
        made.receive_page(page(), now_s=0.0)
        command = made.poll(0.0)
        assert isinstance(command, StartWatch)
        timeouts.append(command.timeout_s)

    assert timeouts[0] - timeouts[1] > 20.0


def test_events_become_changes_in_their_order() -> None:
    deltas = watching().receive_events(
        [event("ADDED", "a", "11"), event("MODIFIED", "a", "12"), event("DELETED", "a", "13")]
    )

    assert [type(delta) for delta in deltas] == [Apply, Apply, Delete]


def test_an_older_version_never_replaces_a_newer_one() -> None:
    made = watching()
    made.receive_events([event("MODIFIED", "a", "100")])

    assert made.receive_events([event("MODIFIED", "a", "99")]) == []
    assert made.stale == 1


def test_versions_are_compared_as_numbers() -> None:
    made = watching()
    made.receive_events([event("MODIFIED", "a", "99")])

    assert len(made.receive_events([event("MODIFIED", "a", "100")])) == 1


def test_a_duplicate_is_dropped() -> None:
    made = watching()
    made.receive_events([event("ADDED", "a", "11")])

    assert made.receive_events([event("ADDED", "a", "11")]) == []


def test_a_deleted_object_is_not_brought_back_by_a_late_event() -> None:
    made = watching()
    made.receive_events([event("ADDED", "a", "11"), event("DELETED", "a", "13")])

    assert made.receive_events([event("MODIFIED", "a", "12")]) == []


def test_an_object_made_anew_under_the_same_name_survives_the_late_deletion_of_the_old_one() -> None:
    made = watching()
    made.receive_events([event("DELETED", "a", "12"), event("ADDED", "a", "13")])

    assert made.receive_events([event("DELETED", "a", "12")]) == []


def test_what_the_list_already_told_is_old() -> None:
    assert watching().receive_events([event("MODIFIED", "a", "10")]) == []


def test_a_version_that_is_no_number_is_taken_in_the_order_of_arrival() -> None:
    made = watching()

    assert len(made.receive_events([event("ADDED", "a", "x9"), event("MODIFIED", "a", "x8")])) == 2
    assert made.resource_version == "x8"


def test_tombstones_are_forgotten_with_the_next_relist() -> None:
    made = watching()
    made.receive_events([event("DELETED", "a", "50")])
    made.fail(Gone(410), now_s=0.0)
    made.receive_page(page(version="20"), now_s=9.0)  # a restored etcd counts from an older version
    made.watch_opened(now_s=9.0)

    assert len(made.receive_events([event("ADDED", "a", "21")])) == 1


def test_a_bookmark_moves_the_position_and_nothing_else() -> None:
    made = watching()

    assert made.receive_events([event("BOOKMARK", "", "77")]) == []
    assert made.resource_version == "77"


def test_a_bookmark_without_a_version_is_ignored() -> None:
    made = watching()

    assert made.receive_events([event("BOOKMARK", "", "")]) == []
    assert made.resource_version == "10"


def test_after_a_clean_end_the_watch_resumes_at_once_at_the_last_version() -> None:
    made = watching()
    made.receive_events([event("ADDED", "a", "30")])
    made.end_stream(clean=True, now_s=290.0)
    command = made.poll(290.0)

    assert isinstance(command, StartWatch)
    assert command.resource_version == "30"
    assert made.restarts == {"ended": 1}


def test_a_cut_stream_resumes_at_the_last_version_after_a_wait() -> None:
    made = watching()
    made.receive_events([event("ADDED", "a", "30")])
    made.end_stream(clean=False, now_s=290.0)

    assert waited_s(made, 290.0) == (0.4, "cut")

    command = made.poll(290.4)
    assert isinstance(command, StartWatch)
    assert command.resource_version == "30"


def test_streams_that_end_at_once_are_asked_ever_more_rarely() -> None:
    made, now_s, waits = synced(), 0.0, []
    for _ in range(8):
        made.watch_opened(now_s=now_s)
        made.end_stream(clean=True, now_s=now_s)
        command = made.poll(now_s)
        assert isinstance(command, Wait)
        waits.append(command.delay_s)
        now_s += command.delay_s

    assert waits == pytest.approx([0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0])


def test_short_streams_that_bring_news_do_not_grow_the_wait() -> None:
    made, now_s = synced(), 0.0
    for version in range(11, 20):
        made.watch_opened(now_s=now_s)
        made.receive_events([event("MODIFIED", "a", str(version))])
        made.end_stream(clean=True, now_s=now_s)
        assert waited_s(made, now_s) == (0.4, "ended_early")
        now_s += 0.4


def test_the_wait_is_short_again_after_two_quiet_minutes() -> None:
    made = watching()
    for _ in range(3):
        made.fail(Unreachable("refused", ""), now_s=0.0)
    made.fail(Unreachable("refused", ""), now_s=1000.0)

    assert waited_s(made, 1000.0) == (0.4, "refused")


def test_the_wait_lies_anywhere_below_its_ceiling() -> None:
    lucky = machine(rng=lambda: 0.0)
    lucky.fail(Unreachable("refused", ""), now_s=0.0)

    assert isinstance(lucky.poll(0.0), ListPage)


@pytest.mark.parametrize(
    "error",
    [
        Gone(410, "Expired", "too old resource version: 1 (2)"),
        ServerError(500, "Expired", ""),
        ServerError(500, "Gone", ""),
        ServerError(500, "InternalError", "too old resource version: 1 (2)"),
    ],
    ids=["code", "reason Expired", "reason Gone", "message only"],
)
def test_an_expired_version_in_any_form_means_relist(error: KubeError) -> None:
    made = watching()
    made.fail(error, now_s=0.0)

    assert made.poll(60.0) == ListPage(500, "")
    assert made.restarts == {"expired": 1}


def test_a_relist_after_expiry_waits_too_so_that_a_server_that_always_expires_is_no_hot_loop() -> None:
    made = watching()
    made.fail(Gone(410), now_s=0.0)

    assert isinstance(made.poll(0.0), Wait)


def test_another_error_event_resumes_the_watch_after_a_wait() -> None:
    made = watching()
    made.fail(ServerError(500, "InternalError", "etcd"), now_s=0.0)

    assert isinstance(made.poll(0.0), Wait)
    assert isinstance(made.poll(60.0), StartWatch)


@pytest.mark.parametrize(
    "error",
    [
        ServerError(504, "Timeout", "Too large resource version"),
        UnexpectedBody(200, "", "unreadable watch event"),
    ],
    ids=["refused", "unreadable"],
)
def test_a_version_from_which_no_watch_works_is_given_up_by_a_relist(error: KubeError) -> None:
    made = synced()
    for attempt in range(5):
        assert isinstance(made.poll(attempt * 60.0), StartWatch)
        made.fail(error, now_s=attempt * 60.0)

    assert isinstance(made.poll(600.0), ListPage)


@pytest.mark.parametrize("error", [Unreachable("refused", ""), ServerError(502, "", "bad gateway")])
def test_an_outage_does_not_make_every_kind_list_again(error: KubeError) -> None:
    made = synced()
    for attempt in range(20):
        made.fail(error, now_s=attempt * 60.0)

    assert isinstance(made.poll(3000.0), StartWatch)


def test_an_expired_token_on_page_two_restarts_the_list() -> None:
    made = machine()
    made.receive_page(page(pod("a", "3"), token="t"), now_s=0.0)
    made.fail(Gone(410, "Expired", "The provided continue parameter is too old"), now_s=0.0)

    assert made.poll(60.0) == ListPage(500, "")
    assert isinstance(made.receive_page(page(), now_s=60.0)[0], ResetBegin)


def test_a_passing_fault_on_page_two_asks_for_the_same_page_again() -> None:
    made = machine()
    made.receive_page(page(pod("a", "3"), token="t"), now_s=0.0)
    made.fail(ServerError(503, "", ""), now_s=0.0)

    assert made.poll(60.0) == ListPage(500, "t")


def test_a_list_without_a_version_is_not_believed() -> None:
    made = machine()

    assert made.receive_page(page(version=""), now_s=0.0) == []
    assert not made.synced
    assert made.restarts == {UnexpectedBody.label: 1}


def test_retry_after_is_a_lower_bound_of_the_wait() -> None:
    made = machine()
    made.fail(TooManyRequests(429, "TooManyRequests", "", retry_after_s=12.0), now_s=0.0)

    assert made.poll(0.0) == Wait(12.0, "throttled")


def test_an_error_stays_told_until_something_newer_was_read() -> None:
    made = synced()
    made.fail(ServerError(500, "InternalError", "etcd"), now_s=0.0)
    made.watch_opened(now_s=60.0)

    assert made.last_error == "500 InternalError: etcd"

    made.receive_events([event("BOOKMARK", "", "11")])

    assert made.last_error is None


def test_forbidden_is_told_in_the_servers_words() -> None:
    made = machine()
    made.fail(Forbidden(403, "Forbidden", "pods is forbidden"), now_s=0.0)

    assert made.forbidden == "pods is forbidden"


def test_forbidden_is_over_with_the_first_answer() -> None:
    made = machine()
    made.fail(Forbidden(403, "Forbidden", "pods is forbidden"), now_s=0.0)
    made.receive_page(page(), now_s=60.0)

    assert made.forbidden is None
    assert made.last_error is None


@pytest.mark.parametrize(
    "misuse",
    [
        lambda made: made.receive_page(page(), now_s=0.0),
        lambda made: made.poll(0.0),
        lambda made: made.watch_opened(now_s=0.0),
    ],
)
def test_feeding_out_of_turn_is_a_bug_and_says_so(misuse: Callable[[Reflection[wire.Pod]], object]) -> None:
    with pytest.raises(OutOfTurnError):
        misuse(watching())


def test_events_without_a_stream_are_a_bug() -> None:
    with pytest.raises(OutOfTurnError):
        synced().receive_events([])
    with pytest.raises(OutOfTurnError):
        synced().end_stream(clean=True, now_s=0.0)
