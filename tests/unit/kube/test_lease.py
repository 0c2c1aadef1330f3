"""Who may take a lease, judged by our own clock and by what we saw, never by what its times say."""

import msgspec
import pytest

from autoscaler.kube.lease import (
    TERM,
    UNSTATED_S,
    LeaseObject,
    LeaseTimes,
    Seen,
    Step,
    lease_decoder,
    next_step,
    next_term,
    observe,
)

OURS, THEIRS = "a", "b"


def lease(
    version: str = "7",
    *,
    holder: str | None = THEIRS,
    duration: int | None = 15,
    transitions: int | None = 3,
    term: str = "4",
) -> LeaseObject:
    return lease_decoder.decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "lease", "resourceVersion": version, "annotations": {TERM: term}},
                "spec": {
                    "holderIdentity": holder,
                    "leaseDurationSeconds": duration,
                    "leaseTransitions": transitions,
                    "renewTime": "1999-01-01T00:00:00.000000Z",
                },
            }
        )
    )


@pytest.mark.parametrize(
    ("holder", "age_s", "expected"),
    [
        ("", 0.0, "acquire"),
        (THEIRS, 0.0, "wait"),
        (THEIRS, 15.0, "wait"),
        (THEIRS, 15.1, "acquire"),
        (OURS, 15.0, "wait"),
        (OURS, 15.1, "acquire"),
    ],
)
def test_a_candidate_takes_what_is_free_or_was_not_seen_to_change_for_its_duration(
    holder: str, age_s: float, expected: Step
) -> None:
    seen = Seen(version="7", holder=holder, duration_s=15.0, changed_s=100.0)

    assert next_step(seen, identity=OURS, term=0, now_s=100.0 + age_s) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Seen(version="7", holder=OURS, term=4), "renew"),
        (Seen(version="7", holder=OURS, term=5), "wait"),
        (Seen(version="7", holder=THEIRS, term=4), "wait"),
        (Seen(version="7", holder="", term=4), "wait"),
        (Seen(version="", holder=OURS, term=4), "wait"),
    ],
    ids=["ours", "another term of ours", "theirs", "nobody's", "deleted"],
)
def test_a_leader_renews_only_the_lease_of_its_own_term(seen: Seen, expected: Step) -> None:
    assert next_step(seen, identity=OURS, term=4, now_s=1e6) == expected


def test_a_lease_counts_from_when_we_saw_it_change_whatever_its_own_times_say() -> None:
    first = observe(lease("7"), None, now_s=100.0)
    same = observe(lease("7"), first, now_s=110.0)
    renewed = observe(lease("8"), same, now_s=112.0)

    assert [one.changed_s for one in (first, same, renewed)] == [100.0, 100.0, 112.0]


def test_a_deleted_lease_is_held_until_its_holder_must_have_noticed() -> None:
    gone = observe(None, observe(lease("7"), None, now_s=100.0), now_s=105.0)

    assert (gone.version, gone.holder, gone.changed_s) == ("", THEIRS, 100.0)
    assert next_step(gone, identity=OURS, term=0, now_s=115.0) == "wait"
    assert next_step(gone, identity=OURS, term=0, now_s=115.1) == "acquire"


def test_a_lease_that_never_was_is_free() -> None:
    assert next_step(observe(None, None, now_s=5.0), identity=OURS, term=0, now_s=5.0) == "acquire"


@pytest.mark.parametrize("duration", [None, 0])
def test_a_holder_that_states_no_duration_has_everybodys(duration: int | None) -> None:
    assert observe(lease(duration=duration), None, now_s=0.0).duration_s == UNSTATED_S


@pytest.mark.parametrize("term", ["", "-1", "1.5", "x", "9" * 16, "²"])
def test_a_term_that_is_no_number_is_none(term: str) -> None:
    assert observe(lease(term=term), None, now_s=0.0).term == 0


def test_the_next_term_is_larger_than_all_that_is_known() -> None:
    seen = observe(lease(term="9", transitions=3), None, now_s=0.0)
    stripped = observe(lease("8", term="", transitions=3), seen, now_s=1.0)
    renewed_by_old_clients = observe(lease(term="", transitions=12), None, now_s=0.0)

    assert next_term(Seen(), 0) == 1
    assert next_term(seen, 0) == 10
    assert next_term(stripped, 0) == 10
    assert next_term(observe(None, seen, now_s=1.0), 0) == 10
    assert next_term(renewed_by_old_clients, 0) == 13
    assert next_term(seen, 40) == 41


@pytest.mark.parametrize(
    "times",
    [
        {"renew_within_s": 15.0},
        {"retry_s": 9.0},
        {"retry_s": 0.0},
        {"request_s": 10.0},
        {"request_s": 0.0},
    ],
)
def test_times_under_which_two_could_lead_are_refused(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="lease"):
        LeaseTimes(**times)
