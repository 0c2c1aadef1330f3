"""What was planned is planned once more before it is sent."""

from dataclasses import dataclass, field

import msgspec
from build import Spec, boards, burst, cluster, node, policy, waiting
from service_fakes import ManualClock

from autoscaler.decide import plan as decide_plan
from autoscaler.model.plan import Action, Refusal
from autoscaler.model.policy import Modes, Policy
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.recheck import RECENT_S, LatestReading, Rechecker, find_again

APPLY = Policy(modes=Modes(default="apply"))
HALF_USED = Spec(seen=(boards(0.0, 0.2),), gpus=2)
SNAPSHOT = cluster(HALF_USED)


def planned(snapshot: Snapshot = SNAPSHOT, policy: Policy = APPLY) -> Action:
    (action,) = decide_plan(snapshot, policy, snapshot.taken_ms).actions
    return action


@dataclass
class Desk:
    """A rechecker over one snapshot; `queries` counts readings of the metrics store."""

    snapshot: Snapshot = SNAPSHOT
    policy: Policy = APPLY
    block: str = ""
    queries: int = 0
    clock: ManualClock = field(default_factory=ManualClock)

    def rechecker(self) -> Rechecker[str, str]:
        async def query(_policy: Policy) -> str:
            self.queries += 1
            return "series"

        return Rechecker(
            blocked=lambda: self.block,
            reading=LatestReading(query, self.clock),
            freeze=lambda: "stores",
            assemble=lambda _frozen, _series, _policy: self.snapshot,
            decide=decide_plan,
            policy=lambda: self.policy,
        )


async def test_the_same_change_that_is_still_let_through_comes_back_as_it_is_planned_now() -> None:
    newer = cluster(HALF_USED.but(workload={"resource_version": "77"}))

    again = await Desk(snapshot=newer).rechecker()(planned())

    assert isinstance(again, Action)
    assert again.id == planned().id
    assert again.resource_version == "77"


async def test_a_change_that_a_guard_refuses_now_is_refused_with_that_guards_reason() -> None:
    protected = cluster(HALF_USED.but(annotations={"gpu-autoscaler.io/do-not-disrupt": "true"}))

    refused = await Desk(snapshot=protected).rechecker()(planned())

    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.guard) == (Reason.PROTECTED, "recheck")


async def test_a_change_that_the_mode_holds_back_now_is_refused() -> None:
    refused = await Desk(policy=Policy()).rechecker()(planned())

    assert isinstance(refused, Refusal)
    assert refused.reason == Reason.MODE_RECOMMEND


async def test_stores_that_are_not_readable_refuse_everything() -> None:
    desk = Desk(block="watch/Pod: not read in full")

    refused = await desk.rechecker()(planned())

    assert isinstance(refused, Refusal)
    assert refused.reason == Reason.EVIDENCE_STALE
    assert "watch/Pod: not read in full" in refused.evidence
    assert desk.queries == 0


async def test_a_reading_of_seconds_ago_is_used_again_and_an_older_one_is_not() -> None:
    desk = Desk()
    recheck = desk.rechecker()

    await recheck(planned())
    await desk.clock.advance(RECENT_S)
    await recheck(planned())
    used_again = desk.queries
    await desk.clock.advance(0.1)
    await recheck(planned())

    assert used_again == 1
    assert desk.queries == 2


def test_another_change_of_the_same_workload_is_not_the_change_that_was_planned() -> None:
    fresh = decide_plan(SNAPSHOT, APPLY, SNAPSHOT.taken_ms)
    other = msgspec.structs.replace(planned(), id="another", before=4, after=3)

    refused = find_again(fresh, other)

    assert isinstance(refused, Refusal)
    assert refused.reason == Reason.SUPERSEDED
    assert refused.evidence == "the plan has changed: right-size 2 -> 1"


def test_a_workload_that_left_the_plan_is_superseded() -> None:
    fresh = decide_plan(cluster(HALF_USED.but(name="other")), APPLY, SNAPSHOT.taken_ms)

    refused = find_again(fresh, planned())

    assert isinstance(refused, Refusal)
    assert refused.reason == Reason.SUPERSEDED


def test_an_eviction_whose_turn_it_is_not_is_not_sent() -> None:
    whole = {"fleetPerHour": 1.0, "fleetPerDay": 1.0, "namespaceShare": 1.0}
    rules = policy(modes={"default": "apply"}, budgets=whole)
    snapshot = cluster(burst("a"), burst("b"), waiting(gpus=2), nodes=(node(gpus=2),))
    made = decide_plan(snapshot, rules, snapshot.taken_ms)
    first, second = made.actions

    refused = find_again(made, second)

    assert find_again(made, first) == first
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.evidence) == (
        Reason.SUPERSEDED,
        "pod team/a-0 goes first for this seat now",
    )
