"""A second opinion: what a plan must never do, worked out from the snapshot alone and summed over the plan.

Nothing of `autoscaler.decide` is used here, so that a fault there cannot hide here.
"""

import math
from collections import Counter
from fractions import Fraction

from autoscaler.model.cluster import Budget, PodRow, Quota, Rollout, Workload
from autoscaler.model.plan import Action, Plan
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot

HOUR_MS = 3_600_000
DAY_MS = 86_400_000


def broken_laws(snapshot: Snapshot, plan: Plan, policy: Policy, now_ms: int) -> list[str]:
    """What the plan would break, in words; empty for a lawful plan."""
    found: list[str] = []
    for action in plan.actions:
        found += [f"{action.target}: {law}" for law in _by_itself(snapshot, action, policy, now_ms)]
    found += _rates(snapshot, plan, policy, now_ms)
    found += [law for budget in snapshot.budgets for law in _disruptions(snapshot, plan, budget)]
    found += _seats(snapshot, plan)
    found += [law for quota in snapshot.quotas for law in _admission(snapshot, plan, quota)]
    return found


def workload_of(snapshot: Snapshot, action: Action) -> Workload:
    (found,) = [w for w in snapshot.workloads if w.uid == action.uid]
    return found


def live_pods(snapshot: Snapshot, action: Action) -> list[PodRow]:
    return [
        pod
        for pod in snapshot.pods
        if snapshot.workloads[pod.workload].uid == action.uid and pod.phase not in {"Succeeded", "Failed"}
    ]


def _by_itself(snapshot: Snapshot, action: Action, policy: Policy, now_ms: int) -> list[str]:
    pods = live_pods(snapshot, action)
    found = [law for pod in pods for law in _unmeasured(snapshot, pod, action, policy)]
    if not found:
        found += _too_little(snapshot, action, policy)
    found += _against_statements(snapshot, action, policy)
    if action.target.kind not in {"Deployment", "StatefulSet"} or action.target.group != "apps":
        found.append("no lawful lever")
    if not action.before > action.after or action.saved_milli_boards <= 0:
        found.append("saves nothing")
    priorities = [snapshot.shapes[pod.shape].priority for pod in pods]
    floor = policy.guards.priority_floor
    if any(p >= 2_000_000_000 or (floor is not None and p >= floor) for p in priorities):
        found.append("touches a priority over the floor")
    if any(
        (a.namespace, a.target_kind, a.target_name)
        == (action.target.namespace, action.target.kind, action.target.name)
        for a in snapshot.autoscalers
    ):
        found.append("changes what an autoscaler answers to")
    found += _at_a_bad_time(snapshot, action, policy, now_ms)
    return found + (_size_limits(snapshot, action) if action.lever == "template" else [])


def _at_a_bad_time(snapshot: Snapshot, action: Action, policy: Policy, now_ms: int) -> list[str]:
    workload, pods, found = workload_of(snapshot, action), live_pods(snapshot, action), []
    if any(act.ref == action.target and now_ms - act.at_ms < policy.guards.cooldown for act in snapshot.acts):
        found.append("acts within the cool-down")
    if len(pods) != workload.replicas or not all(pod.ready and not pod.deleting for pod in pods):
        found.append("acts on replicas that are not ready")
    needed = {"PodDisruptionBudget", "HorizontalPodAutoscaler"}
    if action.lever == "template":
        needed |= {"ResourceQuota", "LimitRange", "Node"}
    if any(a.kind in needed and a.state not in {"available", "absent"} for a in snapshot.access):
        found.append("a limit could not be read")
    if workload.rollout.updated != workload.replicas:
        found.append("acts during a roll-out")
    if any(
        "gpu-autoscaler.io/do-not-disrupt" in n.annotations
        for n in snapshot.namespaces
        if n.name == action.target.namespace
    ):
        found.append("ignores a mark")
    return found


def _unmeasured(snapshot: Snapshot, pod: PodRow, action: Action, policy: Policy) -> list[str]:
    """Why no single source shows every board of the pod."""
    if not _complete(snapshot, pod, action, policy):
        return [f"pod {pod.name} is not measured"]
    telemetry = snapshot.telemetry
    if telemetry.fault or telemetry.warnings or telemetry.store_ms < 0:
        return ["the metrics store is at fault"]
    return []


def _complete(snapshot: Snapshot, pod: PodRow, action: Action, policy: Policy) -> list[list[int]]:
    """The rows of each source that shows every board of the pod, by the plainest reading of the evidence rules."""
    table, telemetry, found = snapshot.holders, snapshot.telemetry, []
    held = snapshot.shapes[pod.shape].demand.get(action.resource, 0)
    at = snapshot.pods.index(pod)
    for number, source in enumerate(telemetry.sources):
        rows = [r for r in range(len(table)) if table.pod[r] == at and table.source[r] == number]
        allowed_ms = 2 * source.interval_ms + min(max(telemetry.lag_ms, 0), policy.evidence.max_lag)
        good = [
            r
            for r in rows
            if table.flags[r] & 7 == 0
            and source.interval_ms > 0
            and table.samples[r] > 0
            and table.samples[r] * source.interval_ms >= policy.evidence.min_coverage * telemetry.window_ms
            and abs(telemetry.store_ms - table.last_ms[r]) <= allowed_ms
            and telemetry.store_ms + telemetry.read_ms - table.last_ms[r] <= allowed_ms
            and all(
                getattr(table, name)[r] != 65_535
                for name in ("mean", "peak", "history_p95", "history_peak", "history_busiest")
            )
        ]
        devices = {table.device[r] for r in good}
        if held > 0 and len(good) == len(rows) == len(devices) == held:
            found.append(good)
    return found


def _too_little(snapshot: Snapshot, action: Action, policy: Policy) -> list[str]:
    """What is left must carry the load that lasted and, of replicas, all peaks; only a stated floor need not.

    Where several sources are complete, the one that shows the least is believed.
    """
    agreed = bool(stated(snapshot, action, "min-replicas")) or policy.methods.allow_zero_replicas
    if action.method == "idle" and agreed:
        return []
    table, target, found = snapshot.holders, policy.need.target_utilization, []
    lasted, peaks = [], []
    for pod in live_pods(snapshot, action):
        choices = _complete(snapshot, pod, action, policy)
        lasted.append(min(sum(int(table.history_busiest[r]) for r in rows) for rows in choices))
        peaks.append(min(sum(int(table.history_peak[r]) for r in rows) for rows in choices))
        intervals = [snapshot.telemetry.sources[table.source[rows[0]]].interval_ms for rows in choices]
        known_ms = max(
            min(int(table.history_samples[r]) for r in rows) * interval
            for rows, interval in zip(choices, intervals, strict=True)
        )
        if known_ms < policy.need.min_confidence * policy.need.confidence_unit:
            found.append(f"pod {pod.name} is known for too short a time")
    if action.lever == "template":
        if max(lasted, default=0) > action.after * 10_000 * target:
            found.append("a pod would not hold the load that lasted")
        return found
    held = min(
        snapshot.shapes[pod.shape].demand.get(action.resource, 0) for pod in live_pods(snapshot, action)
    )
    if sum(lasted) > action.after * held * 10_000 * target:
        found.append("the replicas left would not hold the load that lasted")
    if sum(peaks) > action.after * held * 10_000:
        found.append("the replicas left would not hold the peaks that were seen")
    return found


def stated(snapshot: Snapshot, action: Action, what: str) -> list[str]:
    """What the owner says under a name of ours, on namespace, workload and pods, as annotation or label."""
    workload, key = workload_of(snapshot, action), f"gpu-autoscaler.io/{what}"
    spaces = [n for n in snapshot.namespaces if n.name == action.target.namespace]
    places = [workload, *spaces, *live_pods(snapshot, action)]
    return [m[key] for place in places for m in (place.annotations, place.labels) if key in m]


def _against_statements(snapshot: Snapshot, action: Action, policy: Policy) -> list[str]:
    """Every statement holds, whichever place it stands in."""
    floors, counts = stated(snapshot, action, "min-replicas"), stated(snapshot, action, "allowed-gpus")
    roles, consent = stated(snapshot, action, "role"), counts
    found = []
    if action.lever == "scale":
        consent = floors if action.method == "idle" else []
        least = max(map(int, floors), default=0 if policy.methods.allow_zero_replicas else 1)
        if action.after < least:
            found.append("goes below the floor")
        if action.after == 0 and "serving" in roles and not {*roles} - {"serving"}:
            found.append("leaves a server at nothing")
    elif action.after < 1 or any(
        str(action.after) not in text.replace(" ", "").split(",") for text in counts
    ):
        found.append("is no count that the owner allows")
    if not consent and any(role not in {"serving", "interactive"} for role in roles):
        found.append("changes training without consent")
    return found


def _size_limits(snapshot: Snapshot, action: Action) -> list[str]:
    found = []
    for row in snapshot.limit_ranges:
        if row.namespace != action.target.namespace:
            continue
        if row.unreadable:
            found.append(f"ignores the unreadable limit range {row.name}")
        for limit in row.limits:
            if limit.kind == "PersistentVolumeClaim":
                continue
            if action.after > limit.maximum.get(action.resource, action.after):
                found.append(f"over the maximum of {row.name}")
            if action.after < limit.minimum.get(action.resource, action.after):
                found.append(f"under the minimum of {row.name}")
    return found


def _rates(snapshot: Snapshot, plan: Plan, policy: Policy, now_ms: int) -> list[str]:
    """Rates; what earlier acts spent is not this plan's fault, so they only count where the plan acts."""
    budgets = policy.budgets
    fleet = sum(n.allocatable.get(r, 0) for n in snapshot.nodes for r in policy.resources.boards)
    hour = max(1, math.floor(Fraction(str(budgets.fleet_per_hour)) * fleet))
    day = max(1, math.floor(Fraction(str(budgets.fleet_per_day)) * fleet))
    share = max(1, math.floor(Fraction(str(budgets.namespace_share)) * hour))
    spent: Counter[str] = Counter()
    for act in snapshot.acts:
        boards = max(0, math.ceil(act.boards_milli / 1000))
        spent["day"] += boards * (now_ms - act.at_ms < DAY_MS)
        spent["hour"] += boards * (now_ms - act.at_ms < HOUR_MS)
        spent[f"in {act.ref.namespace}"] += boards * (now_ms - act.at_ms < HOUR_MS)
        spent["in flight"] += not act.verified
    limits = {"day": day, "hour": hour, "in flight": budgets.in_flight}
    for action in plan.actions:
        namespace = f"in {action.target.namespace}"
        limits[namespace] = share
        spent.update(
            {"in flight": 1} | dict.fromkeys(("day", "hour", namespace), action.saved_milli_boards // 1000)
        )
    if not plan.actions:
        return []
    over = [f"{spent[what]} {what}, {limit} allowed" for what, limit in limits.items() if spent[what] > limit]
    for action in plan.actions:
        replicas = workload_of(snapshot, action).replicas
        at_once = max(1, math.floor(Fraction(str(budgets.pods_per_workload)) * replicas))
        if _taken(workload_of(snapshot, action), action) > at_once:
            over.append(f"{action.target}: more pods at once than the workload's budget")
    return over


def scaled(value: str, count: int) -> Fraction:
    """An int-or-percent of a count, not rounded."""
    return Fraction(int(value[:-1]) * count, 100) if value.endswith("%") else Fraction(int(value))


def _moves(rollout: Rollout, replicas: int) -> tuple[int, int]:
    """Pods made before and pods taken before, while a Deployment rolls."""
    if rollout.recreate:
        return 0, replicas
    surge = math.ceil(scaled(rollout.max_surge, replicas))
    away = math.floor(scaled(rollout.max_unavailable, replicas))
    if surge == away == 0:
        away = 1
    return min(surge, replicas), min(away, replicas)


def _taken(workload: Workload, action: Action) -> int:
    if action.lever == "scale":
        return action.before - action.after
    if workload.ref.kind == "StatefulSet":
        return max(
            1, min(math.ceil(scaled(workload.rollout.max_unavailable, workload.replicas)), workload.replicas)
        )
    return _moves(workload.rollout, workload.replicas)[1]


def _disruptions(snapshot: Snapshot, plan: Plan, budget: Budget) -> list[str]:
    taken, found = 0, []
    for action in plan.actions:
        left = action.after if action.lever == "scale" else 1
        pods = [p for p in live_pods(snapshot, action) if p.namespace == budget.namespace]
        selected = [p for p in pods if budget.selector.selects(p.labels)]
        workload = workload_of(snapshot, action)
        if not selected or _taken(workload, action) == 0:
            continue
        taken += _taken(workload, action)
        everyone = [
            p for p in snapshot.pods if p.namespace == budget.namespace and budget.selector.selects(p.labels)
        ]
        alone = budget.expected_pods <= len(everyone) == len(selected)
        if alone and left == 0 and budget.minimum not in {"", "0", "0%"} and not budget.minimum.endswith("%"):
            found.append(f"{budget.name} would be left without a pod")
        if not budget.observed:
            found.append(f"{budget.name} is not up to date")
        for value in filter(None, (budget.minimum, budget.unavailable)):
            if not value.removesuffix("%").isdecimal():
                return [f"{budget.name} cannot be read"]
    if taken > max(0, budget.allowed):
        found.append(f"{budget.name} allows {budget.allowed} disruptions, {taken} planned")
    return found


def _seats(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Surge pods before any old pod goes need boards that are free now, all of them together."""
    asked: Counter[str] = Counter()
    for action in plan.actions:
        workload = workload_of(snapshot, action)
        if action.lever == "template" and workload.ref.kind == "Deployment":
            surge, away = _moves(workload.rollout, workload.replicas)
            asked[action.resource] += surge * action.after if away == 0 else 0
    found = []
    for resource, amount in asked.items():
        free = 0
        for host in snapshot.nodes:
            held = sum(
                snapshot.shapes[pod.shape].demand.get(resource, 0)
                for pod in snapshot.pods
                if pod.node == host.name
            )
            free += max(0, host.allocatable.get(resource, 0) - held) if not host.unschedulable else 0
        if amount > free:
            found.append(f"{amount} {resource} for surge pods, {free} free")
    return found


def _admission(snapshot: Snapshot, plan: Plan, quota: Quota) -> list[str]:
    """The quota while all roll-outs of the plan have their surge pods beside the old ones."""
    charge: Counter[str] = Counter()
    rolling = [a for a in plan.actions if a.lever == "template" and a.target.namespace == quota.namespace]
    for action in rolling:
        workload = workload_of(snapshot, action)
        surge = _moves(workload.rollout, workload.replicas)[0] if workload.ref.kind == "Deployment" else 0
        charge["pods"] += surge
        charge[f"requests.{action.resource}"] += surge * action.after
    if rolling and quota.unreadable:
        return [f"ignores the unreadable quota {quota.name}"]
    over = [
        f"{quota.name}: {quota.used.get(key, 0)} + {charge[key]} of {quota.hard[key]} {key}"
        for key in charge
        if key in quota.hard and quota.used.get(key, 0) + charge[key] > quota.hard[key]
    ]
    return over if rolling else []
