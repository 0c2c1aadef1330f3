"""One cycle: judge every workload, let methods propose and guards rule, explain all of it."""

from autoscaler.decide.actions import change_of, mode_for
from autoscaler.decide.assess import assess
from autoscaler.decide.explain import Trail, explain_row
from autoscaler.decide.fleet_health import fleet_health
from autoscaler.decide.guards import CHANGE_GUARDS, SUBJECT_GUARDS
from autoscaler.decide.guards.budgets import pods_of
from autoscaler.decide.guards.disruption import budgets_of
from autoscaler.decide.guards.limits import quota_charge
from autoscaler.decide.guards.rollout import unavailable_of
from autoscaler.decide.guards.successor import surge_places
from autoscaler.decide.methods import methods_for
from autoscaler.decide.methods.bounds import through_bounds
from autoscaler.decide.methods.make_room import make_room
from autoscaler.decide.proposal import Judged, Proposal, Ruling, refuse, successor_demand
from autoscaler.decide.tally import Effect, Tally
from autoscaler.decide.world import Case, World, is_board
from autoscaler.model.breaker import FleetHealth, FleetWatch
from autoscaler.model.cluster import TERMINAL, WorkloadRef
from autoscaler.model.plan import ExplainRow, Fleet, Method, Plan
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import Reason
from autoscaler.model.selectors import parse_selector
from autoscaler.model.snapshot import Snapshot

_METHOD_ORDER: dict[Method, int] = {
    "make-room": 1,
    "right-size": 3,
    "scale-in": 4,
    "idle": 5,
    "deactivate": 5,
}


def plan(snapshot: Snapshot, policy: Policy, now_ms: int) -> Plan:
    """What would be done now, what was refused and why; a total function of its arguments."""
    return plan_and_watch(snapshot, policy, now_ms)[0]


def plan_and_watch(snapshot: Snapshot, policy: Policy, now_ms: int) -> tuple[Plan, FleetWatch]:
    """The same, with what the next cycle's snapshot has to carry as its `watch`."""
    world = World(snapshot, policy, now_ms)
    judged, health, watch = judge_fleet(world)
    trails = [_judge(world, one) for one in judged]
    evictions, tally = make_room(world, trails, Tally.of(world))
    proposals = [(trail, _propose(world, trail)) for trail in trails if trail.action is None]
    for trail, wanted in sorted((p for p in proposals if p[1]), key=_urgency):
        tally = _accept(world, trail, wanted, tally)
    rows = tuple(explain_row(world, trail) for trail in trails)
    changes = [trail.action for trail in trails if trail.action and trail.action.method != "make-room"]
    changes.sort(key=lambda a: (_METHOD_ORDER[a.method], -a.saved_milli_boards, a.target))
    made = Plan(
        taken_ms=snapshot.taken_ms,
        mode=policy.modes.in_words,
        fleet=_fleet(world, trails, rows, health),
        actions=(*evictions, *changes),
        refusals=tuple(refusal for row in rows for refusal in row.refusals),
        rows=rows,
    )
    return made, watch


def _urgency(item: tuple[Trail, tuple[Proposal, ...]]) -> tuple[int, int, object]:
    trail, wanted = item
    return (_METHOD_ORDER[wanted[0].method], -wanted[0].saved_boards, trail.judged.case.workload.ref)


def judge_fleet(world: World) -> tuple[list[Judged], FleetHealth, FleetWatch]:
    """Every workload in scope, in the order of its name, with its assessment; and the health of them all."""
    cases = [world.case(index) for index in range(len(world.snapshot.workloads))]
    cases.sort(key=_name_order)
    in_scope = _Scope(world)
    assessed = [(case, assess(world, case)) for case in cases if in_scope.holds(case)]
    health, watch = fleet_health(world, assessed)
    return [Judged(case, assessment, health) for case, assessment in assessed], health, watch


def _name_order(case: Case) -> tuple[str, str, WorkloadRef, str]:
    """As people look for them: by namespace and name, whatever the kind."""
    ref = case.workload.ref
    return (ref.namespace, ref.name, ref, case.workload.uid)


class _Scope:
    """Which workloads are judged: those that hold or want accelerators, or cannot be read, and pass the selectors."""

    def __init__(self, world: World) -> None:
        resources = world.policy.resources
        self._only = resources.namespaces
        self._pods = parse_selector(resources.pod_selector)
        chosen = parse_selector(resources.namespace_selector)
        self._all_namespaces = not resources.namespace_selector
        self._chosen = {name for name, row in world.namespaces.items() if chosen.selects(row.labels)}

    def holds(self, case: Case) -> bool:
        """Whether the workload is judged."""
        namespace = case.workload.ref.namespace
        if (self._only and namespace not in self._only) or not (
            self._all_namespaces or namespace in self._chosen
        ):
            return False
        labels = [unit.pod.labels for unit in case.units] or [case.workload.labels]
        return bool(case.resource or case.faults) and all(self._pods.selects(found) for found in labels)


def _judge(world: World, judged: Judged) -> Trail:
    trail = Trail(judged)
    trail.rulings = [guard(world, judged) for guard in SUBJECT_GUARDS]
    trail.subject_refusals = [refuse(judged, ruling) for ruling in trail.rulings if ruling.reason]
    return trail


def _propose(world: World, trail: Trail) -> tuple[Proposal, ...]:
    """What the methods would do with a workload that no subject guard holds back, in the order of preference."""
    if trail.subject_refusals:
        return ()
    wanted: list[Proposal] = []
    for method in methods_for(world, trail.judged):
        outcome = method(world, trail.judged)
        if isinstance(outcome, Proposal):
            wanted.append(through_bounds(world, trail.judged, outcome))
        else:
            trail.method_rulings.append(outcome)
            trail.method_refusals.append(refuse(trail.judged, outcome))
    return tuple(wanted)


def _accept(world: World, trail: Trail, wanted: tuple[Proposal, ...], tally: Tally) -> Tally:
    """Takes the first proposal that every guard lets pass; the tally that results."""
    for proposal in wanted:
        rulings = [guard(world, trail.judged, proposal, tally) for guard in CHANGE_GUARDS]
        rulings.append(_mode_ruling(world.policy, trail.judged, proposal))
        trail.rulings.extend(rulings)
        refused = [refuse(trail.judged, ruling, proposal) for ruling in rulings if ruling.reason]
        if not refused:
            trail.action = change_of(world, trail.judged, proposal)
            return tally.after(_effect(world, trail.judged, proposal, tally))
        trail.change_refusals.extend(refused)
    return tally


def _mode_ruling(policy: Policy, judged: Judged, proposal: Proposal) -> Ruling:
    mode = mode_for(policy, judged, proposal.method)
    if mode == "observe":
        stated = judged.case.stated.mode
        by_owner = stated is not None and stated.mode == "observe"
        what = stated.cause if stated and by_owner else f"{proposal.method} is in mode observe"
        remedy = "" if by_owner else f"set the mode of {proposal.method} to recommend"
        return Ruling("mode", f"{what}: nothing is planned", Reason.MODE_RECOMMEND, remedy)
    return Ruling("mode", f"{proposal.method} is in mode {mode}")


def _effect(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Effect:
    taken = unavailable_of(judged, proposal)
    return Effect(
        namespace=judged.case.workload.ref.namespace,
        surge_nodes=surge_places(world, judged, proposal, tally) or (),
        surge_demand=successor_demand(judged, proposal),
        quota=quota_charge(judged, proposal),
        disruptions=tuple((budget.name, taken) for budget in budgets_of(world, judged)),
        boards=proposal.saved_boards,
        method=proposal.method,
        pods=pods_of(judged, proposal),
    )


def _fleet(world: World, trails: list[Trail], rows: tuple[ExplainRow, ...], health: FleetHealth) -> Fleet:
    boards = [row for row in rows if is_board(row.resource, world.policy.resources)]
    held = sum(row.held for row in boards)
    needed = sum(
        min(row.held * 1000, row.need.target * row.units) if row.need else row.held * 1000 for row in boards
    )
    saved = sum(trail.action.saved_milli_boards for trail in trails if trail.action)
    waiting = sum(_waiting_milli(trail) for trail in trails if not trail.action)
    live = sum(1 for pod in world.snapshot.pods if pod.phase not in TERMINAL)
    return Fleet(
        boards=world.fleet_boards,
        held=held,
        needed_milli=needed,
        reclaimable_milli=saved + waiting,
        units=live,
        measured=health.measured,
        coverage=round(health.coverage, 4),
        workloads=len(rows),
        faults=_faults(world.snapshot),
        health=health,
    )


def _waiting_milli(trail: Trail) -> int:
    """What would be saved by the first change that only the budget holds back."""
    case = trail.judged.case
    reasons: dict[Method | None, set[Reason]] = {}
    for refusal in trail.change_refusals:
        reasons.setdefault(refusal.method, set()).add(refusal.reason)
    for refusal in trail.change_refusals:
        if reasons[refusal.method] == {Reason.BUDGET_SPENT}:
            before, after = refusal.before or 0, refusal.after or 0
            per_step = case.workload.replicas if refusal.method == "right-size" else case.held
            per_step = case.total_held if refusal.method == "deactivate" else per_step
            return (before - after) * per_step * 1000
    return 0


def _faults(snapshot: Snapshot) -> tuple[str, ...]:
    telemetry = snapshot.telemetry
    faults = [f"metrics store: {telemetry.fault}"] if telemetry.fault else []
    faults += [f"metrics store warned: {warning}" for warning in telemetry.warnings]
    faults += [f"{count} samples dropped: {why}" for why, count in sorted(telemetry.dropped.items())]
    if telemetry.ghosts:
        faults.append(f"{telemetry.ghosts} series belong to no known pod")
    faults += sorted(
        f"may not read {row.kind}: {row.detail}" for row in snapshot.access if row.state == "forbidden"
    )
    return tuple(faults)
