import msgspec
import pytest
from build import NOW_MS, Spec, boards, burst, cluster, node, policy, waiting

from autoscaler.act.seats import is_paid_for, stalled
from autoscaler.decide import plan as decide_plan
from autoscaler.model.ledger import Entry, Record, State
from autoscaler.model.plan import Action, Plan, Seat
from autoscaler.model.snapshot import Snapshot

WITHIN_MS = 600_000
RULES = policy(
    modes={"default": "apply"}, budgets={"fleetPerHour": 1.0, "fleetPerDay": 1.0, "namespaceShare": 1.0}
)
NOTHING_PLANNED = decide_plan(cluster(), RULES, NOW_MS)


def world(*, nominated: str = "node-1", bound: str = "") -> Snapshot:
    """A pod that waits for two boards, and two workloads that would yield one each."""
    pod = {"nominated_node": nominated, "node": bound}
    return cluster(burst("a"), burst("b"), waiting(gpus=2, pod=pod), nodes=(node(gpus=2),))


def evictions() -> list[Action]:
    return list(decide_plan(world(nominated=""), RULES, NOW_MS).actions)


def entry(action: Action, state: State, *, closed_ms: int = NOW_MS - 2 * WITHIN_MS) -> Entry:
    record = Record(
        id=f"record-{action.uid}",
        action=action,
        state=state,
        actor="service",
        intended_ms=closed_ms,
        settle_ms=closed_ms,
        closed_ms=closed_ms,
    )
    return Entry(action.target, action.uid, records=(record,))


def seats(*entries: Entry, plan: Plan = NOTHING_PLANNED, snapshot: Snapshot | None = None) -> list[Seat]:
    return list(stalled(entries, plan, snapshot or world(), within_ms=WITHIN_MS))


def test_a_seat_that_somebody_left_for_is_paid_for() -> None:
    first, second = evictions()
    dropped = entry(second, "dropped").records[0]

    assert is_paid_for([entry(first, "verified"), entry(second, "dropped")], dropped)
    assert is_paid_for([entry(first, "acted")], dropped)
    assert not is_paid_for([entry(first, "dropped"), entry(second, "dropped")], dropped)
    assert not is_paid_for([entry(second, "verified")], entry(second, "verified").records[0])


def test_an_eviction_for_another_seat_pays_for_nothing() -> None:
    first, second = evictions()
    assert first.seat is not None
    elsewhere = msgspec.structs.replace(first, seat=msgspec.structs.replace(first.seat, node="node-2"))

    assert not is_paid_for([entry(elsewhere, "verified")], entry(second, "dropped").records[0])


def test_a_seat_that_is_not_gone_on_with_is_given_up_in_time() -> None:
    first, second = evictions()
    late, fresh = NOW_MS - WITHIN_MS - 1, NOW_MS - WITHIN_MS

    assert seats(entry(first, "verified", closed_ms=late)) == [first.seat]
    assert seats(entry(first, "verified", closed_ms=fresh)) == []
    assert seats(entry(first, "verified"), entry(second, "dropped", closed_ms=fresh)) == []


def test_a_seat_that_is_planned_or_in_hand_or_taken_is_kept() -> None:
    first, second = evictions()
    planned = msgspec.structs.replace(NOTHING_PLANNED, actions=(second,))

    assert seats(entry(first, "verified"), plan=planned) == []
    assert seats(entry(first, "verified"), entry(second, "acted")) == []
    assert seats(entry(first, "verified"), snapshot=world(bound="node-1")) == []
    assert seats(entry(first, "verified"), snapshot=world(nominated="node-2")) == []


def test_a_seat_whose_next_eviction_is_held_back_is_given_up() -> None:
    first, second = evictions()
    held = msgspec.structs.replace(second, held_by=("ModeRecommend",))

    assert seats(
        entry(first, "verified"), plan=msgspec.structs.replace(NOTHING_PLANNED, actions=(held,))
    ) == [first.seat]


@pytest.mark.parametrize("state", ["verified", "failed", "dropped"])
def test_what_was_no_eviction_has_no_seat(state: State) -> None:
    half_used = cluster(Spec(gpus=2, seen=(boards(0.0, 0.2),)))
    (action,) = decide_plan(half_used, RULES, NOW_MS).actions

    assert seats(entry(action, state)) == []
    assert not is_paid_for([entry(action, state)], entry(action, state).records[0])
