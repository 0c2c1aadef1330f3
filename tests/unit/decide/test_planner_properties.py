"""What holds for every plan of every cluster, whatever the numbers."""

import msgspec
import pytest
from build import HOUR_MS, NOW_MS
from hypothesis import given, settings
from hypothesis import strategies as st
from law import broken_laws, stated
from worlds import (
    LOSSES,
    autoscaled_worlds,
    bounded_worlds,
    carry_out,
    crowded_worlds,
    degrade,
    pods_of,
    policies,
    rates,
    rows_of,
    shuffled,
    worlds,
    worlds_with_a_past,
    yielding,
)

from autoscaler.decide import plan
from autoscaler.model.evidence import ACTIVITY_SCALE
from autoscaler.model.plan import Action, Plan, encode_plan
from autoscaler.model.policy import DAY_MS, Policy
from autoscaler.model.snapshot import Snapshot, decode_snapshot, encode_snapshot

CALM = worlds(wild=False)
WIDE = policies(wild=False)
ANY_WORLD = st.one_of(worlds(), bounded_worlds(), crowded_worlds(), autoscaled_worlds(), CALM)
SEARCHED = settings(max_examples=max(200, settings().max_examples))
"""The laws find one fault among many rules: few examples would pass by most of them."""


def acted(planned: Plan) -> dict[str, Action]:
    return {action.uid: action for action in planned.actions}


@given(ANY_WORLD, policies())
def test_no_world_and_no_policy_make_it_raise_and_every_workload_has_one_row(
    snapshot: Snapshot, policy: Policy
) -> None:
    planned = plan(snapshot, policy, NOW_MS)

    assert planned == msgspec.json.decode(encode_plan(planned), type=Plan)
    assert len({(row.workload, row.resource) for row in planned.rows}) == len(planned.rows)
    for row in planned.rows:
        assert (row.action is None) != (row.refusals == ()) or not (
            policy.methods.right_size or policy.methods.scale_in or policy.methods.idle
        )
    assert planned.fleet.reclaimable_milli >= sum(a.saved_milli_boards for a in planned.actions)


@SEARCHED
@given(bounded_worlds(), rates())
def test_no_plan_goes_past_a_limit_of_the_cluster_or_the_policy(snapshot: Snapshot, policy: Policy) -> None:
    assert broken_laws(snapshot, plan(snapshot, policy, NOW_MS), policy, NOW_MS) == []


@SEARCHED
@given(bounded_worlds(), WIDE)
def test_no_plan_goes_past_a_limit_where_only_the_cluster_limits(snapshot: Snapshot, policy: Policy) -> None:
    assert broken_laws(snapshot, plan(snapshot, policy, NOW_MS), policy, NOW_MS) == []


@SEARCHED
@given(worlds_with_a_past(), WIDE | st.just(Policy()))
def test_no_plan_leaves_less_than_the_past_needed(snapshot: Snapshot, policy: Policy) -> None:
    assert broken_laws(snapshot, plan(snapshot, policy, NOW_MS), policy, NOW_MS) == []


@SEARCHED
@given(worlds(), policies())
def test_no_plan_of_a_broken_world_breaks_a_law(snapshot: Snapshot, policy: Policy) -> None:
    assert broken_laws(snapshot, plan(snapshot, policy, NOW_MS), policy, NOW_MS) == []


@SEARCHED
@given(crowded_worlds(), yielding())
def test_no_eviction_breaks_a_law(snapshot: Snapshot, policy: Policy) -> None:
    assert broken_laws(snapshot, plan(snapshot, policy, NOW_MS), policy, NOW_MS) == []


@SEARCHED
@given(crowded_worlds(), yielding(), st.sampled_from(LOSSES))
def test_one_lost_quality_of_a_victim_s_evidence_keeps_it(
    snapshot: Snapshot, policy: Policy, loss: str
) -> None:
    for action in plan(snapshot, policy, NOW_MS).actions:
        if action.pod:
            (at,) = [n for n, pod in enumerate(snapshot.pods) if pod.uid == action.pod.uid]
            left = plan(degrade(snapshot, rows_of(snapshot, {at})[:1], loss), policy, NOW_MS)
            assert action.pod not in {other.pod for other in left.actions}


@SEARCHED
@given(crowded_worlds(), yielding())
def test_whoever_was_made_room_for_rests_and_nobody_is_evicted_twice(
    snapshot: Snapshot, policy: Policy
) -> None:
    first = plan(snapshot, policy, NOW_MS)
    given_to = {action.seat.pod.uid for action in first.actions if action.seat}
    evicted = {action.uid for action in first.actions if action.pod}
    again = plan(carry_out(snapshot, first), policy, NOW_MS)

    assert not given_to & {action.seat.pod.uid for action in again.actions if action.seat}
    assert not evicted & {action.uid for action in again.actions}


@SEARCHED
@given(crowded_worlds(), yielding(), st.randoms(use_true_random=False))
def test_the_same_crowd_gives_the_same_plan_byte_for_byte(
    snapshot: Snapshot, policy: Policy, random: object
) -> None:
    expected = encode_plan(plan(snapshot, policy, NOW_MS))

    assert expected == encode_plan(plan(decode_snapshot(encode_snapshot(snapshot)), policy, NOW_MS))
    assert expected == encode_plan(plan(shuffled(snapshot, random), policy, NOW_MS))


@given(snapshot=CALM, policy=WIDE, data=st.data())
def test_one_lost_quality_of_one_row_takes_the_action_away(
    snapshot: Snapshot, policy: Policy, data: st.DataObject
) -> None:
    for action in plan(snapshot, policy, NOW_MS).actions:
        row = data.draw(st.sampled_from(rows_of(snapshot, pods_of(snapshot, action.target))))
        for loss in LOSSES:
            left = acted(plan(degrade(snapshot, [row], loss), policy, NOW_MS))
            assert action.uid not in left, loss


@given(snapshot=CALM, policy=WIDE, loss=st.sampled_from(LOSSES), data=st.data())
def test_losing_evidence_never_adds_or_changes_an_action(
    snapshot: Snapshot, policy: Policy, loss: str, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(snapshot.holders) - 1), min_size=1, unique=True))
    before = acted(plan(snapshot, policy, NOW_MS))
    after = acted(plan(degrade(snapshot, rows, loss), policy, NOW_MS))

    assert after.items() <= before.items()


@given(CALM, WIDE, st.sampled_from([0.0, 0.05, 0.2]), st.sampled_from([0.95, 0.99, 1.0]))
def test_a_stricter_policy_never_adds_or_changes_an_action(
    snapshot: Snapshot, policy: Policy, watermark: float, coverage: float
) -> None:
    evidence = msgspec.structs.replace(
        policy.evidence, low_watermark=watermark, min_coverage=coverage, fleet_coverage=coverage
    )
    stricter = msgspec.structs.replace(policy, evidence=evidence)
    before, after = acted(plan(snapshot, policy, NOW_MS)), acted(plan(snapshot, stricter, NOW_MS))

    assert after.items() <= before.items()


@given(CALM, WIDE)
def test_every_action_lowers_saves_and_stays_over_the_floor(snapshot: Snapshot, policy: Policy) -> None:
    for action in plan(snapshot, policy, NOW_MS).actions:
        least = 1
        if action.lever == "scale":
            floors = [int(text) for text in stated(snapshot, action, "min-replicas")]
            least = max(floors, default=0 if policy.methods.allow_zero_replicas else 1)
        assert least <= action.after < action.before
        assert action.saved_milli_boards > 0


@given(st.one_of(CALM, worlds()), WIDE)
def test_nobody_changes_a_count_that_is_part_of_the_application_without_consent(
    snapshot: Snapshot, policy: Policy
) -> None:
    planned = plan(snapshot, policy, NOW_MS)
    for row in planned.rows:
        workload = next(w for w in snapshot.workloads if w.ref == row.workload)
        shapes = [
            snapshot.shapes[p.shape] for p in snapshot.pods if snapshot.workloads[p.workload] is workload
        ]
        hints = {hint for shape in shapes for c in shape.containers for hint in c.parallelism}
        if row.action and row.action.lever == "scale" and row.role == "serving":
            hints &= {"WORLD_SIZE"}
        if row.action and (row.role == "training" or hints):
            consent = "allowed-gpus" if row.action.lever == "template" else "min-replicas"
            assert stated(snapshot, row.action, consent)


@given(CALM, WIDE)
def test_consent_names_the_counts_and_no_other_is_proposed(snapshot: Snapshot, policy: Policy) -> None:
    for action in plan(snapshot, policy, NOW_MS).actions:
        for text in stated(snapshot, action, "allowed-gpus") if action.lever == "template" else ():
            assert str(action.after) in text.split(",")


@given(CALM, WIDE)
def test_thin_history_never_sizes(snapshot: Snapshot, policy: Policy) -> None:
    for row in plan(snapshot, policy, NOW_MS).rows:
        agreed = policy.methods.allow_zero_replicas or (
            row.action and stated(snapshot, row.action, "min-replicas")
        )
        if row.action and not (row.action.method == "idle" and agreed):
            assert row.need is not None
            assert policy.need.min_confidence <= row.need.confidence


@given(CALM, WIDE)
def test_nothing_idle_is_released_before_the_promised_time(snapshot: Snapshot, policy: Policy) -> None:
    ceiling = policy.evidence.idle_ceiling * ACTIVITY_SCALE
    for action in plan(snapshot, policy, NOW_MS).actions:
        if action.method == "idle":
            rows = rows_of(snapshot, pods_of(snapshot, action.target))
            assert all(snapshot.holders.peak[row] <= ceiling for row in rows)
            assert snapshot.telemetry.window_ms >= policy.methods.idle_floor


@given(CALM, WIDE)
def test_what_is_done_is_not_done_again_within_the_cool_down(snapshot: Snapshot, policy: Policy) -> None:
    first = plan(snapshot, policy, NOW_MS)
    done = acted(first)
    again = acted(plan(carry_out(snapshot, first), policy, NOW_MS))

    assert not done.keys() & again.keys()


@given(CALM, WIDE)
def test_repeated_plans_come_to_rest_and_leave_room_for_the_load(snapshot: Snapshot, policy: Policy) -> None:
    held: dict[str, list[int]] = {}
    for _ in range(30):
        planned = plan(snapshot, policy, NOW_MS)
        if not planned.actions:
            break
        for action in planned.actions:
            held.setdefault(f"{action.uid} {action.lever}", [action.before]).append(action.after)
        snapshot = carry_out(snapshot, planned, at_ms=NOW_MS - 2 * DAY_MS)
        saturated = [
            row.workload for row in plan(snapshot, policy, NOW_MS).rows if row.verdict == "saturated"
        ]
        assert not {action.target for action in planned.actions} & set(saturated) or (
            policy.need.target_utilization == 1.0
        )
    else:
        pytest.fail(f"still acting: {planned.actions}")
    for steps in held.values():
        assert sorted(steps, reverse=True) == steps


@given(st.one_of(bounded_worlds(), worlds()), policies(), st.randoms(use_true_random=False))
def test_the_same_cluster_gives_the_same_plan_byte_for_byte(
    snapshot: Snapshot, policy: Policy, random: object
) -> None:
    expected = encode_plan(plan(snapshot, policy, NOW_MS))

    assert expected == encode_plan(plan(snapshot, policy, NOW_MS))
    assert expected == encode_plan(plan(decode_snapshot(encode_snapshot(snapshot)), policy, NOW_MS))
    assert expected == encode_plan(plan(shuffled(snapshot, random), policy, NOW_MS))


@given(CALM, WIDE)
def test_the_id_of_a_change_does_not_depend_on_time_or_neighbours(snapshot: Snapshot, policy: Policy) -> None:
    now = acted(plan(snapshot, policy, NOW_MS))
    later = acted(plan(snapshot, policy, NOW_MS + HOUR_MS))

    assert {a.id for a in now.values()} == {a.id for a in later.values()}
    assert len({a.id for a in now.values()}) == len(now)
