"""A try that was refused is not repeated with every plan, and a changed object is a new chance."""

import msgspec
from service_fakes import RIGHT_SIZE

from autoscaler.service.hands import FIRST_REST_S, LONGEST_REST_S, Refused


def test_a_refused_try_rests_and_each_time_twice_as_long_up_to_a_limit() -> None:
    refused, now_s, waits = Refused(), 0.0, []
    for _ in range(8):
        refused.hear(RIGHT_SIZE, "refused", now_s)
        span_s = refused.until[RIGHT_SIZE.id][1] - now_s
        assert refused.rests(RIGHT_SIZE, now_s + span_s - 1)
        assert not refused.rests(RIGHT_SIZE, now_s + span_s)
        waits.append(span_s)
        now_s += span_s

    assert waits == [30, 60, 120, 240, 480, 900, 900, 900]
    assert (FIRST_REST_S, LONGEST_REST_S) == (30, 900)


def test_another_version_of_the_object_is_tried_at_once() -> None:
    refused = Refused()
    refused.hear(RIGHT_SIZE, "refused", 0.0)

    assert not refused.rests(msgspec.structs.replace(RIGHT_SIZE, resource_version="2"), 1.0)


def test_a_try_that_ended_otherwise_is_forgotten() -> None:
    refused = Refused()
    refused.hear(RIGHT_SIZE, "refused", 0.0)
    refused.hear(RIGHT_SIZE, "conflict", 40.0)

    assert not refused.rests(RIGHT_SIZE, 41.0)
    assert refused.until == {}
