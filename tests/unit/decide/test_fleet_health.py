import msgspec
import pytest
from build import GPU, MINUTE_MS, NOW_MS, Spec, boards, burst, cluster, node, policy, waiting
from fleet_stories import Story, unit, units
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide import plan_and_watch
from autoscaler.model.breaker import FleetWatch, Sight
from autoscaler.model.evidence import UnownedDevice
from autoscaler.model.policy import Policy

LOW_FLOOR = {"evidence": {"fleetCoverage": 0.1}}
"""Coverage may be low, so that only falls are incidents."""


def floor(share: float) -> Policy:
    return policy(evidence={"fleetCoverage": share})


def nameless(*numbers: int) -> dict[str, object]:
    """The boards of these units have samples that name nobody; no board is free beside them."""
    unowned = tuple(UnownedDevice(f"gpu-{n}", f"node-{n}", peak=0) for n in numbers)
    return {"telemetry": {"unowned": unowned}, "nodes": [node(f"node-{n}", gpus=1) for n in range(20)]}


def test_a_healthy_fleet_is_free_and_counted() -> None:
    health = Story().at(0, units(4))

    assert (health.units, health.measured, health.seen, health.unattributed) == (4, 4, 4, 0)
    assert (health.frozen, health.since_ms, health.until_ms) == ("", -1, -1)


@pytest.mark.parametrize(("dark", "frozen"), [(1, False), (2, True), (5, True)])
def test_a_fifth_of_the_fleet_that_goes_dark_within_five_minutes_freezes_it(dark: int, frozen: bool) -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))

    assert frozen is bool(story.at(5, units(10, dark=dark)).frozen)


def test_a_fall_is_told_with_its_numbers() -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))

    assert story.at(1, units(10, dark=4)).frozen == (
        "coverage fell by 40% within 5m: 4 of 10 units are measured no longer"
    )


def test_a_fall_that_took_longer_than_five_minutes_is_no_incident() -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))
    for minute, dark in ((3, 1), (6, 1), (9, 2), (12, 2), (15, 3)):
        health = story.at(minute, units(10, dark=dark))
        assert health.frozen == ""


def test_several_small_falls_within_five_minutes_add_up() -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))

    assert story.at(2, units(10, dark=1)).frozen == ""
    assert story.at(4, units(10, dark=2)).frozen.startswith("coverage fell by 20%")


def test_boards_whose_samples_lose_their_names_are_a_fall_of_attribution() -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))

    health = story.at(1, units(10, dark=3), **nameless(0, 1, 2))

    assert health.frozen == (
        "attribution fell by 30% within 5m: 3 of 10 units have boards whose samples name nobody now"
    )
    assert (health.seen, health.unattributed, health.attribution) == (7, 3, 0.7)


def test_samples_without_an_owner_on_boards_that_nobody_holds_are_no_loss_of_names() -> None:
    free = [node(f"node-{n}", gpus=2) for n in range(10)]
    unowned = tuple(UnownedDevice(f"gpu-{n}", f"node-{n}", peak=0) for n in range(10))

    health = Story().at(0, units(10, dark=1), telemetry={"unowned": unowned}, nodes=free)

    assert (health.unattributed, health.attribution) == (0, 1.0)


def test_a_store_that_does_not_answer_freezes_a_fleet_of_any_size() -> None:
    assert Story().at(0, [], telemetry={"fault": "refused"}).frozen == (
        "the metrics store did not answer: refused"
    )
    assert "it never has" in Story().at(0, units(1), telemetry={"store_ms": -1}).frozen


def test_an_answer_in_part_freezes_the_fleet() -> None:
    told = Story().at(0, units(2), telemetry={"warnings": ("a store gateway is gone",)}).frozen

    assert told == "the metrics store answered in part: a store gateway is gone"


INCIDENTS = {
    "no answer": {"specs": units(10), "telemetry": {"fault": "refused"}},
    "in part": {"specs": units(10), "telemetry": {"warnings": ("partial",)}},
    "dark": {"specs": units(10, dark=10)},
    "nameless": {"specs": units(10, dark=10), **nameless(*range(10))},
}


@pytest.mark.parametrize("incident", sorted(INCIDENTS))
def test_after_an_incident_a_full_window_has_to_pass_first(incident: str) -> None:
    story = Story(policy(evidence={"fleetFallWithin": "1m"}))
    story.at(0, units(10))
    assert story.at(1, **INCIDENTS[incident]).frozen
    told = [(minute, story.at(minute, units(10)).frozen) for minute in (2, 15, 30.9, 31)]

    assert [(at, bool(why)) for at, why in told] == [(2, True), (15, True), (30.9, True), (31, False)]
    assert told[1][1].startswith("a full window of 30m is needed after an incident, which was seen 14m ago (")
    assert told[1][1].endswith("): 16m to go")


def test_another_incident_starts_the_window_anew() -> None:
    story = Story()
    story.at(0, units(4), telemetry={"fault": "refused"})
    story.at(20, units(4), telemetry={"fault": "refused"})

    assert "to go" in story.at(49, units(4)).frozen
    assert story.at(50, units(4)).frozen == ""


def test_the_time_of_freezing_is_that_of_the_first_cycle_and_the_end_is_told() -> None:
    story = Story()
    story.at(0, units(4), telemetry={"fault": "refused"})
    story.at(1, units(4), telemetry={"fault": "refused"})
    health = story.at(2, units(4))

    assert (health.since_ms, health.until_ms) == (NOW_MS, NOW_MS + 31 * MINUTE_MS)
    assert story.at(31, units(4)).since_ms == -1
    assert story.watch.incident == ""


def test_windows_with_gaps_hold_the_fleet_by_themselves_and_free_it_when_they_are_full() -> None:
    gaps = [unit(n, seen=True).but(seen=(boards(0.5, coverage=0.5),)) for n in range(4)]
    story = Story()

    assert story.at(0, gaps).frozen == "0 of 4 units measured, 80% needed"
    assert story.at(1, units(4)).frozen == ""


def test_a_restart_in_an_incident_sees_it_in_the_stores_own_data() -> None:
    story = Story()
    story.at(0, units(4))

    fresh = story.restarted()
    assert fresh.at(1, units(4, dark=4)).frozen
    assert fresh.at(2, units(4)).frozen


def test_a_fall_that_goes_on_is_the_new_normal_after_its_window() -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))
    frozen = [bool(story.at(minute, units(10, dark=5)).frozen) for minute in (1, 5, 6, 34, 35)]

    assert frozen == [True, True, True, True, False]


@pytest.mark.parametrize(
    "after",
    [
        units(3),
        units(10)[7:],
        [unit(n, age_ms=MINUTE_MS, seen=False) for n in range(10, 40)] + units(10),
        units(10) + [unit(n, seen=False, pod={"phase": "Pending"}) for n in range(10, 40)],
        [unit(n, seen=False, pod={"deleting": True}) for n in range(8)] + units(10)[8:],
        [unit(n, seen=False, pod={"phase": "Succeeded"}) for n in range(8)] + units(10)[8:],
        [unit(n, seen=False, pod={"uid": f"new-{n}", "started_ms": NOW_MS}) for n in range(8)]
        + units(10)[8:],
    ],
    ids=["most end", "others end", "a scale-up", "many pend", "many leave", "jobs finish", "a rollout"],
)
def test_workloads_that_come_and_go_are_no_incident(after: list[Spec]) -> None:
    story = Story()
    story.at(0, units(10))

    assert story.at(1, after).frozen == ""


def test_units_that_never_had_samples_lose_none_when_others_end() -> None:
    story = Story(floor(0.1))
    assert story.at(0, units(10, dark=5)).frozen == ""

    assert story.at(1, units(6, dark=5)).frozen == ""


def test_one_small_namespace_that_goes_dark_is_its_own_trouble() -> None:
    others = units(20)
    story = Story()
    story.at(0, [*others, *(unit(n, namespace="small") for n in range(20, 23))])

    dark = [unit(n, namespace="small", seen=False) for n in range(20, 23)]
    assert story.at(1, [*others, *dark]).frozen == ""


def test_boards_shared_or_sliced_are_not_the_fleets_units() -> None:
    slices = [unit(n, seen=False, resource="nvidia.com/mig-1g.10gb") for n in range(9)]
    none = [unit(n, seen=False, gpus=0) for n in range(9, 12)]

    assert Story().at(0, [*slices, *none]).units == 0


@pytest.mark.parametrize(
    ("board", "seen"),
    [
        ({"age_ms": 30_000, "coverage": 0.5}, 1),
        ({"age_ms": 30_001, "coverage": 0.5}, 0),
        ({"flags": 4}, 1),
    ],
)
def test_a_unit_is_seen_while_every_board_has_a_fresh_sample(board: dict[str, object], seen: int) -> None:
    health = Story().at(0, [unit(0).but(seen=(boards(0.5, **board),))])

    assert (health.units, health.measured, health.seen) == (1, 0, seen)


def test_one_board_of_two_is_not_enough_and_one_value_for_the_pod_is() -> None:
    half, whole = unit(0, gpus=2).but(seen=(boards(0.5),)), unit(0, gpus=2).but(seen=(boards(0.5, flags=8),))

    assert (Story().at(0, [half]).seen, Story().at(0, [whole]).seen) == (0, 1)


def test_a_frozen_fleet_gives_no_room_either_and_says_why() -> None:
    full = [node(gpus=1)]
    specs = [burst("victim", node="node-1"), waiting("urgent")]
    story = Story(policy())
    story.at(0, specs, nodes=full)
    assert story.plan is not None
    assert [action.method for action in story.plan.actions] == ["make-room"]

    story.at(1, specs, nodes=full, telemetry={"fault": "refused"})
    story.at(2, specs, nodes=full)

    assert story.plan.actions == ()
    assert {row.reason for row in story.plan.rows if row.workload.name == "urgent"} == {"FleetBlind"}


def test_the_watch_is_all_that_a_cycle_leaves_to_the_next() -> None:
    story = Story()
    story.at(0, units(2, dark=1))

    assert story.watch == FleetWatch(
        units={"uid-team-web-0-0": Sight(-1, -1), "uid-team-web-1-0": Sight(NOW_MS, NOW_MS)},
        incident="1 of 2 units measured, 80% needed",
        incident_ms=NOW_MS,
        since_ms=NOW_MS,
    )


def test_what_a_unit_once_showed_is_forgotten_after_the_time_of_a_fall() -> None:
    story = Story(floor(0.1))
    story.at(0, units(10))
    story.at(5, units(10, dark=1))
    assert story.watch.units["uid-team-web-0-0"] == Sight(NOW_MS, NOW_MS)

    story.at(6, units(10, dark=1))
    assert story.watch.units["uid-team-web-0-0"] == Sight(-1, -1)


@given(
    before=st.lists(st.booleans(), min_size=1, max_size=12),
    stays=st.lists(st.booleans(), min_size=12, max_size=12),
    newcomers=st.integers(0, 12),
    minutes=st.floats(0, 60),
)
def test_whoever_ends_or_starts_nothing_falls(
    before: list[bool], stays: list[bool], newcomers: int, minutes: float
) -> None:
    fleet = [unit(n, seen=seen) for n, seen in enumerate(before)]
    left = [spec for spec, stay in zip(fleet, stays, strict=False) if stay]
    new = [
        unit(n, seen=False, age_ms=0, pod={"started_ms": NOW_MS + round(minutes * MINUTE_MS)})
        for n in range(20, 20 + newcomers)
    ]
    story = Story(floor(0.0))
    story.at(0, fleet)

    assert story.at(minutes, [*left, *new]).frozen == ""


@given(count=st.integers(1, 25), dark=st.integers(0, 25), share=st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.0]))
def test_a_fall_is_an_incident_exactly_from_the_policys_share_on(count: int, dark: int, share: float) -> None:
    lost = min(dark, count)
    story = Story(policy(evidence={"fleetCoverage": 0.0, "fleetFall": share}))
    story.at(0, units(count))

    assert bool(story.at(1, units(count, dark=lost)).frozen) is (lost > 0 and lost >= share * count)


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans(), st.floats(0.5, 20)), min_size=1, max_size=8))
def test_nothing_is_taken_away_in_an_incident_nor_within_a_window_after_it(
    cycles: list[tuple[int, bool, float]],
) -> None:
    """Whatever the story, a fleet that is free had a whole window of cycles in which it was lit and answered for."""
    story, minute, last_bad = Story(), 0.0, -1e9
    for dark, fault, step in cycles:
        minute += step
        health = story.at(minute, units(10, dark=dark), telemetry={"fault": "refused"} if fault else {})
        if fault or dark > 2:
            last_bad = minute
        if not health.frozen:
            assert minute - last_bad >= 30 - 1e-6


@given(st.integers(0, 10), st.integers(0, 10))
def test_the_same_past_and_present_give_the_same_plan_and_watch(first: int, second: int) -> None:
    story = Story()
    story.at(0, units(10, dark=first))
    snapshot = msgspec.structs.replace(cluster(*units(10, dark=second)), watch=story.watch)

    assert plan_and_watch(snapshot, policy(), NOW_MS) == plan_and_watch(snapshot, policy(), NOW_MS)


def test_a_unit_of_another_resource_than_boards_changes_nothing() -> None:
    assert Story().at(0, [unit(0, resource=GPU)]).units == 1
