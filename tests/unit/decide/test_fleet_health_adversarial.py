from typing import Any

import msgspec
import pytest
from build import NOW_MS, Spec, boards, cluster, policy
from fleet_stories import Story, units
from hypothesis import given
from hypothesis import strategies as st
from worlds import crowded_worlds, policies, worlds, yielding

from autoscaler.decide import plan_and_watch
from autoscaler.model.breaker import FleetWatch, Sight
from autoscaler.model.duration import LATEST_MS
from autoscaler.model.evidence import Source
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot, decode_snapshot, encode_snapshot

TIMES = st.sampled_from([-1, 0, 1, NOW_MS - 60_000, NOW_MS, NOW_MS + 3_600_000, LATEST_MS])
UIDS = st.sampled_from(["", "uid-team-w0-0", "uid-team-w1-0", "uid-team-web-0-0", "uid-gone"])


def watches() -> st.SearchStrategy[FleetWatch]:
    return st.builds(
        FleetWatch,
        units=st.dictionaries(UIDS, st.builds(Sight, TIMES, TIMES)),
        incident=st.sampled_from(["", "x", "\x1b[2J"]),
        incident_ms=TIMES,
        since_ms=TIMES,
    )


@given(worlds(), policies(), watches())
def test_whatever_is_remembered_a_frozen_fleet_loses_nothing(
    snapshot: Snapshot, rules: Policy, watch: FleetWatch
) -> None:
    made, after = plan_and_watch(msgspec.structs.replace(snapshot, watch=watch), rules, NOW_MS)
    health = made.fleet.health

    assert not (health.frozen and made.actions)
    assert health.measured <= health.seen
    assert health.seen + health.unattributed <= health.units == len(after.units)
    assert (after.since_ms >= 0) is bool(health.frozen)


@given(crowded_worlds(), yielding(), watches())
def test_a_frozen_fleet_makes_no_room(snapshot: Snapshot, rules: Policy, watch: FleetWatch) -> None:
    made, _ = plan_and_watch(msgspec.structs.replace(snapshot, watch=watch), rules, NOW_MS)

    assert not (made.fleet.health.frozen and made.actions)


@given(watches())
def test_what_is_remembered_is_part_of_a_saved_snapshot(watch: FleetWatch) -> None:
    snapshot = msgspec.structs.replace(cluster(Spec()), watch=watch)

    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


def test_a_snapshot_of_before_there_was_a_watch_is_read_as_that_of_a_fresh_start() -> None:
    snapshot = cluster(Spec())
    document: dict[str, Any] = msgspec.json.decode(encode_plain(snapshot))
    del document["watch"]

    assert decode_snapshot(msgspec.json.encode(document)).watch == FleetWatch()


def encode_plain(snapshot: Snapshot) -> bytes:
    return msgspec.json.encode(snapshot, enc_hook=lambda column: column.tolist())


@pytest.mark.parametrize("incident_ms", [NOW_MS + 1, NOW_MS + 3_600_000, LATEST_MS])
def test_an_incident_of_the_future_freezes_for_its_window_too(incident_ms: int) -> None:
    """Clocks step back; then nothing is known to have passed."""
    story = Story(watch=FleetWatch(incident="x", incident_ms=incident_ms))
    health = story.at(0, units(2))

    assert "which was seen 0s ago (x)" in health.frozen
    assert health.until_ms == min(incident_ms + 1_800_000, LATEST_MS)


def test_what_was_seen_in_the_future_was_seen() -> None:
    known = {f"uid-team-web-{n}-0": Sight(NOW_MS + 60_000, NOW_MS + 60_000) for n in range(10)}
    story = Story(policy(evidence={"fleetCoverage": 0.0}), watch=FleetWatch(units=known))

    assert story.at(0, units(10, dark=2)).frozen.startswith("coverage fell by 20%")


def test_a_source_without_an_interval_and_negative_lag_or_reading_time_do_no_harm() -> None:
    spec = Spec(seen=(boards(0.5, age_ms=1, coverage=0.1),))
    source = Source("dcgm", "engine", 0, interval_measured=True)
    told = {"lag_ms": -5, "read_ms": -7}

    assert Story().at(0, [spec], sources=(source,), telemetry=told).seen == 0
