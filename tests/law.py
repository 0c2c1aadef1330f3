"""A second opinion: what a plan must never do, worked out from the snapshot alone and summed over the plan.

Nothing of `autoscaler.decide` is used here, so that a fault there cannot hide here.
"""

import math
from collections import Counter
from fractions import Fraction

from autoscaler.model.cluster import Budget, PodRow, Quota, Rollout, Workload
from autoscaler.model.history import WorkloadHistory
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
    found += eviction_laws(snapshot, plan, policy)
    found += [f"{uid} is acted on twice" for uid, n in Counter(a.uid for a in plan.actions).items() if n > 1]
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
    memory = [act for act in snapshot.acts if act.ref == action.target]
    past = ["acts while the workload is left alone"] * any(act.not_before_ms > now_ms for act in memory)
    past += ["acts on what others put back"] * any(
        act.reversals >= policy.guards.max_reversals for act in memory
    )
    past += ["acts before the last act is verified"] * any(
        not act.verified for act in memory if act.at_ms > 0
    )
    if action.lever == "evict":
        return past + eviction_by_itself(snapshot, action, policy, now_ms)
    return past + _change_by_itself(snapshot, action, policy, now_ms)


def _change_by_itself(snapshot: Snapshot, action: Action, policy: Policy, now_ms: int) -> list[str]:
    pods = live_pods(snapshot, action)
    found = [law for pod in pods for law in _unmeasured(snapshot, pod, action, policy)]
    if not found:
        found += _too_little(snapshot, action, policy)
    found += _against_statements(snapshot, action, policy)
    if action.lever == "deactivate":
        return found + _through_kueue(snapshot, action, policy, now_ms)
    if _is_kueue_s(snapshot, action):
        found.append("changes what Kueue manages")
    levers = {("apps", "Deployment"), ("apps", "StatefulSet")}
    if action.lever == "template":
        levers.add(("batch", "CronJob"))
    if (action.target.group, action.target.kind) == ("batch", "Job"):
        found += _against_a_job(snapshot, action)
    elif (action.target.group, action.target.kind) not in levers:
        found.append("no lawful lever")
    if not action.before > action.after or action.saved_milli_boards <= 0:
        found.append("saves nothing")
    priorities = [snapshot.shapes[pod.shape].priority for pod in pods]
    floor = policy.guards.priority_floor
    if any(p >= 2_000_000_000 or (floor is not None and p >= floor) for p in priorities):
        found.append("touches a priority over the floor")
    found += _against_autoscalers(snapshot, action, policy)
    found += _at_a_bad_time(snapshot, action, policy, now_ms)
    return found + (_size_limits(snapshot, action) if action.lever == "template" else [])


def _against_autoscalers(snapshot: Snapshot, action: Action, policy: Policy) -> list[str]:
    """What an autoscaler holds is changed by its minimum alone, and only where that is what holds it."""
    target = (action.target.namespace, action.target.kind, action.target.name)
    rows = [a for a in snapshot.autoscalers if (a.namespace, a.target_kind, a.target_name) == target]
    if action.lever != "bounds":
        return ["changes what an autoscaler answers to"] if rows else []
    allowed = policy.methods.autoscaler_bounds
    if allowed == "never" or (allowed == "agreed" and not stated(snapshot, action, "min-replicas")):
        return ["lowers a minimum that nobody gave away"]
    if len(rows) != 1 or action.through is None or rows[0].uid != action.through.uid:
        return ["lowers the minimum of another autoscaler"]
    (row,) = rows
    found = ["lowers a minimum that another keeps"] * bool(row.controller)
    found += ["lowers a minimum in vain"] * (not row.scales_in or bool(row.blind))
    replicas = workload_of(snapshot, action).replicas
    return found + ["lowers what does not hold"] * (
        not (1 <= action.after < action.before == row.minimum == replicas)
    )


def _is_kueue_s(snapshot: Snapshot, action: Action) -> bool:
    uids = {action.uid, *(pod.uid for pod in live_pods(snapshot, action))}
    return any(
        uids.intersection(row.owners) and row.namespace == action.target.namespace and not row.finished
        for row in snapshot.kueue_workloads
    )


def _through_kueue(snapshot: Snapshot, action: Action, policy: Policy, now_ms: int) -> list[str]:
    """Only what one Workload stands for, which is active, admitted, and controlled by a kind that Kueue suspends."""
    pods, found = live_pods(snapshot, action), list[str]()
    rows = [row for row in snapshot.kueue_workloads if action.through and row.uid == action.through.uid]
    row = rows[0] if len(rows) == 1 else None
    good = row is not None and row.active and row.reserved and row.admitted
    if not good or row is None or row.evicted or row.finished or row.controller != action.uid:
        found.append("releases what Kueue has not admitted")
    if action.target.kind in {"Deployment", "StatefulSet", "Pod", "CronJob", "DaemonSet"}:
        found.append("has Kueue delete pods")
    if action.saved_milli_boards <= 0 or (action.before, action.after) != (1, 0) or action.pods != len(pods):
        found.append("saves nothing")
    if not all(pod.ready and not pod.deleting for pod in pods):
        found.append("acts on pods that are not ready")
    if any(act.ref == action.target and now_ms - act.at_ms < policy.guards.cooldown for act in snapshot.acts):
        found.append("acts within the cool-down")
    if any(
        row.kind == "PodDisruptionBudget" and row.state not in {"available", "absent"}
        for row in snapshot.access
    ):
        found.append("a limit could not be read")
    if any(
        "gpu-autoscaler.io/do-not-disrupt" in n.annotations
        for n in snapshot.namespaces
        if n.name == action.target.namespace
    ):
        found.append("ignores a mark")
    if any(snapshot.shapes[pod.shape].priority >= 2_000_000_000 for pod in pods):
        found.append("touches a priority over the floor")
    return found


def _against_a_job(snapshot: Snapshot, action: Action) -> list[str]:
    """Fewer pods at once of a Job that states its floor, never under one and never an index."""
    job = workload_of(snapshot, action)
    agreed = {**job.labels, **job.annotations}.get("gpu-autoscaler.io/min-replicas", "0") != "0"
    lawful = (action.lever, action.method) == ("scale", "idle") and agreed and action.after >= 1
    ends_by_itself = job.completions < 0 and job.succeeded_pods > 0
    return [] if lawful and not (job.indexed or job.suspended or ends_by_itself) else ["no lawful lever"]


def _at_a_bad_time(snapshot: Snapshot, action: Action, policy: Policy, now_ms: int) -> list[str]:
    workload, pods, found = workload_of(snapshot, action), live_pods(snapshot, action), []
    runs = action.target.kind == "CronJob"
    if any(act.ref == action.target and now_ms - act.at_ms < policy.guards.cooldown for act in snapshot.acts):
        found.append("acts within the cool-down")
    if runs and (workload.suspended or workload.completed_runs < policy.need.min_runs or not pods):
        found.append("changes a run that nothing is known of")
    if not runs and (
        len(pods) != workload.replicas or not all(pod.ready and not pod.deleting for pod in pods)
    ):
        found.append("acts on replicas that are not ready")
    needed = {"PodDisruptionBudget", "HorizontalPodAutoscaler"}
    if action.lever == "template":
        needed |= {"ResourceQuota", "LimitRange", "Node"}
    if any(a.kind in needed and a.state not in {"available", "absent"} for a in snapshot.access):
        found.append("a limit could not be read")
    if not runs and workload.rollout.updated != workload.replicas:
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
    if action.method in {"idle", "deactivate"} and agreed:
        return []
    table, target, found = snapshot.holders, policy.need.target_utilization, []
    lasted, peaks = [], []
    before = _before_these_pods(snapshot, action)
    for pod in live_pods(snapshot, action):
        choices = _complete(snapshot, pod, action, policy)
        lasted.append(min(sum(int(table.history_busiest[r]) for r in rows) for rows in choices))
        peaks.append(min(sum(int(table.history_peak[r]) for r in rows) for rows in choices))
        intervals = [snapshot.telemetry.sources[table.source[rows[0]]].interval_ms for rows in choices]
        known_ms = max(
            min(int(table.history_samples[r]) for r in rows) * interval
            for rows, interval in zip(choices, intervals, strict=True)
        )
        if sum(row.boards for row in before) >= snapshot.shapes[pod.shape].demand.get(action.resource, 0):
            known_ms = max(known_ms, min((row.history_ms for row in before), default=0))
        least_ms = policy.need.min_confidence * policy.need.confidence_unit
        if action.target.kind != "CronJob" and known_ms < least_ms:
            found.append(f"pod {pod.name} is known for too short a time")
    if action.lever == "template":
        if max(lasted, default=0) > action.after * 10_000 * target:
            found.append("a pod would not hold the load that lasted")
        return found + _less_than_before(before, action, 1, target)
    held = min(
        snapshot.shapes[pod.shape].demand.get(action.resource, 0) for pod in live_pods(snapshot, action)
    )
    if sum(lasted) > action.after * held * 10_000 * target:
        found.append("the replicas left would not hold the load that lasted")
    if sum(peaks) > action.after * held * 10_000:
        found.append("the replicas left would not hold the peaks that were seen")
    return found + _less_than_before(before, action, held, target)


def _less_than_before(before: list[WorkloadHistory], action: Action, held: int, target: float) -> list[str]:
    """What is left must carry the load that is remembered too: of a unit for a size, of all of them for replicas."""
    if action.lever == "template":
        lasted, peaks = sum(row.busiest_milli for row in before), 0
    else:
        lasted, peaks = sum(row.total_milli for row in before), sum(row.total_peak_milli for row in before)
    short = ["what is left would not hold the load of before these pods"] * (
        lasted > action.after * held * 1_000 * target
    )
    return short + ["what is left would not hold the peaks of before these pods"] * (
        peaks > action.after * held * 1_000
    )


def _before_these_pods(snapshot: Snapshot, action: Action) -> list[WorkloadHistory]:
    """What is remembered of the workload, of containers that its pods have."""
    names = {c.name for pod in live_pods(snapshot, action) for c in snapshot.shapes[pod.shape].containers}
    return [row for row in snapshot.histories if row.ref == action.target and row.container in names]


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
    if action.lever == "deactivate":
        if max(map(int, floors), default=1) > 0:
            found.append("stops what nobody agreed to stop")
        return found
    if action.lever in {"scale", "bounds"}:
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
    runs = action.target.kind == "CronJob"
    if not consent and (runs or any(role not in {"serving", "interactive"} for role in roles)):
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


def _ended(snapshot: Snapshot, action: Action) -> int:
    """Pods that an action ends."""
    if action.lever == "template":
        return 0 if action.target.kind == "CronJob" else workload_of(snapshot, action).replicas
    if action.lever == "deactivate":
        return len(live_pods(snapshot, action))
    return 1 if action.lever == "evict" else action.before - action.after


def _rates(snapshot: Snapshot, plan: Plan, policy: Policy, now_ms: int) -> list[str]:
    """Rates; what earlier acts spent is not this plan's fault, so they only count where the plan acts."""
    budgets = policy.budgets
    fleet = sum(n.allocatable.get(r, 0) for n in snapshot.nodes for r in policy.resources.boards)
    grown = 2 ** max(0, min(snapshot.control.clean_days, budgets.max_doublings))
    hour = max(1, math.floor(min(1, grown * Fraction(str(budgets.fleet_per_hour))) * fleet))
    day = max(1, math.floor(min(1, grown * Fraction(str(budgets.fleet_per_day))) * fleet))
    share = max(1, math.floor(Fraction(str(budgets.namespace_share)) * hour))
    spent: Counter[str] = Counter()
    for act in snapshot.acts:
        boards = max(0, math.ceil(act.boards_milli / 1000))
        spent["day"] += boards * (now_ms - act.at_ms < DAY_MS)
        spent["hour"] += boards * (now_ms - act.at_ms < HOUR_MS)
        for space in {act.ref.namespace, act.given_to or act.ref.namespace}:
            spent[f"in {space}"] += boards * (now_ms - act.at_ms < HOUR_MS)
        spent["in flight"] += not act.verified
        spent[f"by {act.method}"] += boards * (now_ms - act.at_ms < HOUR_MS)
        spent["pods"] += max(0, act.pods) * (now_ms - act.at_ms < HOUR_MS)
    limits = {"day": day, "hour": hour, "in flight": budgets.in_flight, "pods": budgets.pods_per_hour}
    limits |= {"this cycle": budgets.acts_per_cycle}
    limits |= {
        f"by {method}": max(1, math.floor(Fraction(str(share)) * fleet))
        for method, share in budgets.fleet_per_hour_by_kind.items()
    }
    for action in plan.actions:
        given_to = action.seat.pod.namespace if action.seat else action.target.namespace
        spaces = {f"in {action.target.namespace}", f"in {given_to}"}
        limits |= dict.fromkeys(spaces, share)
        boards = action.before if action.lever == "evict" else action.saved_milli_boards // 1000
        spent.update(dict.fromkeys(("day", "hour", f"by {action.method}", *spaces), boards))
        for what in ("in flight", "this cycle"):
            spent[what] += action.seat is None or action.seat.more == 0
        spent["pods"] += _ended(snapshot, action)
    if not plan.actions:
        return []
    over = [f"{spent[what]} {what}, {limit} allowed" for what, limit in limits.items() if spent[what] > limit]
    for action in plan.actions:
        replicas = workload_of(snapshot, action).replicas
        at_once = max(1, math.floor(Fraction(str(budgets.pods_per_workload)) * replicas))
        whole = (
            action.lever == "deactivate"
        )  # Kueue stops all of it or nothing, and its owner agreed to nothing
        if not whole and _taken(workload_of(snapshot, action), action) > at_once:
            over.append(f"{action.target}: more pods at once than the workload's budget")
    return over


def eviction_by_itself(snapshot: Snapshot, action: Action, policy: Policy, now_ms: int) -> list[str]:
    """Who is evicted, for whom, and whether it is a time to evict."""
    if action.pod is None or action.seat is None or action.method != "make-room":
        return ["an eviction without a pod or a seat"]
    (victim,) = [p for p in live_pods(snapshot, action) if p.uid == action.pod.uid]
    (waiting,) = [p for p in snapshot.pods if p.uid == action.seat.pod.uid]
    shape, wanted = snapshot.shapes[victim.shape], snapshot.shapes[waiting.shape]
    found = _unmeasured(snapshot, victim, action, policy)
    if not found and not _yields(snapshot, victim, action, policy):
        found.append("evicts who does not yield")
    held = shape.demand.get(action.resource, 0)
    if (action.before, action.after, action.saved_milli_boards) != (held, 0, 0) or held < 1:
        found.append("does not say what is given")
    if victim.node != action.seat.node or victim.deleting or not victim.ready or victim.phase != "Running":
        found.append("evicts who holds no seat for good")
    found += _not_to_be_served(snapshot, waiting, policy, now_ms)
    known = policy.guards.schedulers
    if wanted.scheduler not in known or shape.scheduler not in known:
        found.append("crosses another scheduler")
    return found + _not_to_be_evicted(snapshot, action, victim, policy, now_ms)


def _not_to_be_served(snapshot: Snapshot, waiting: PodRow, policy: Policy, now_ms: int) -> list[str]:
    found, wanted = [], snapshot.shapes[waiting.shape]
    if waiting.node or waiting.deleting or waiting.phase != "Pending" or not waiting.unschedulable:
        found.append("makes room for who does not wait")
    rules = policy.yields
    if wanted.priority_class in rules.classes or not any(
        wanted.priority_class.startswith(prefix) for prefix in rules.beneficiaries
    ):
        found.append("makes room for a class that is no beneficiary")
    if wanted.unmodelled or wanted.volume_claims or wanted.resource_claims:
        found.append("cannot know where the waiting pod may go")
    if any(
        act.ref == snapshot.workloads[waiting.workload].ref
        and act.method == "make-room"
        and (act.not_before_ms > now_ms or now_ms - act.at_ms < policy.guards.backoff)
        for act in snapshot.acts
    ):
        found.append("evicts for who was evicted")
    return found


def _not_to_be_evicted(
    snapshot: Snapshot, action: Action, victim: PodRow, policy: Policy, now_ms: int
) -> list[str]:
    found, shape = [], snapshot.shapes[victim.shape]
    floor = policy.guards.priority_floor
    if shape.priority >= 2_000_000_000 or (floor is not None and shape.priority >= floor):
        found.append("touches a priority over the floor")
    if any(act.ref == action.target and now_ms - act.at_ms < policy.guards.cooldown for act in snapshot.acts):
        found.append("acts within the cool-down")
    if now_ms - max(victim.started_ms, victim.ready_ms) < max(
        policy.methods.start_grace, policy.evidence.window
    ):
        found.append("evicts who has only just come")
    return found + _not_to_be_evicted_at_all(snapshot, action, victim)


def _not_to_be_evicted_at_all(snapshot: Snapshot, action: Action, victim: PodRow) -> list[str]:
    workload = workload_of(snapshot, action)
    found, kind = [], (action.target.group, action.target.kind)
    mark = "gpu-autoscaler.io/do-not-disrupt"
    stated = [victim.annotations, workload.annotations]
    stated += [n.annotations for n in snapshot.namespaces if n.name == action.target.namespace]
    if any(mark in texts for texts in stated):
        found.append("ignores a mark")
    if kind == ("", "Pod"):
        if victim.annotations.get("gpu-autoscaler.io/evictable") != "true":
            found.append("evicts a bare pod without consent")
    elif kind not in {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
    }:
        found.append("evicts what may not come back")
    if kind == ("batch", "Job") and (
        workload.replicas > 1 or workload.failed_pods + victim.restarts + 1 > workload.backoff_limit
    ):
        found.append("fails a Job, or breaks a gang")
    needed = {"PodDisruptionBudget", "HorizontalPodAutoscaler", "Node", "Job"}
    if any(a.kind in needed and a.state not in {"available", "absent"} for a in snapshot.access):
        found.append("a limit could not be read")
    budgets = [
        b for b in snapshot.budgets if b.namespace == victim.namespace and b.selector.selects(victim.labels)
    ]
    if len(budgets) > 1:
        found.append("evicts a pod that the Eviction API never takes")
    return found


def _yields(snapshot: Snapshot, victim: PodRow, action: Action, policy: Policy) -> bool:
    """By class; by idleness, where that yields; or as an under-used unit of strictly lower priority."""
    shape, rules, table = snapshot.shapes[victim.shape], policy.yields, snapshot.holders
    if shape.priority_class in rules.classes:
        return True
    lower = action.seat is not None and shape.priority < action.seat.priority and rules.lower_priority
    for rows in _complete(snapshot, victim, action, policy):
        use = sum(int(table.mean[r]) for r in rows) / (10_000 * len(rows))
        idle = all(table.peak[r] <= policy.evidence.idle_ceiling * 10_000 for r in rows)
        if (idle and (rules.idle or lower)) or (lower and use < policy.evidence.low_watermark):
            return True
    return False


def eviction_laws(snapshot: Snapshot, plan: Plan, policy: Policy) -> list[str]:
    """Each seat is on one node, holds its pod whole once its victims left, and needs every one of them.

    Others who wait may have taken what is free.
    """
    found: list[str] = []
    evictions = [a for a in plan.actions if a.seat and a.pod]
    victims = {a.pod.uid for a in evictions if a.pod}
    given: dict[str, list[str]] = {}
    for action in evictions:
        if action.seat:
            given.setdefault(action.seat.pod.uid, []).append(action.seat.node)
    by_uid = {pod.uid: pod for pod in snapshot.pods}
    others = [p for p in snapshot.pods if not p.node and p.phase == "Pending" and p.uid not in given]
    for waiting, nodes in given.items():
        if len(set(nodes)) > 1:
            found.append(f"the seat of {waiting} is on {len(set(nodes))} nodes")
        seat = [a.seat for a in evictions if a.seat and a.seat.pod.uid == waiting]
        if [one.more for one in seat] != list(range(len(seat) - 1, -1, -1)):
            found.append(f"the seat of {waiting} is not told in order")
        found += _lets_in(snapshot, nodes[0], by_uid[waiting])
        seated = [by_uid[uid] for uid, places in given.items() if nodes[0] in places]
        if _over(snapshot, nodes[0], seated, victims):
            found.append(f"the pods seated on {nodes[0]} do not fit it")
        for own in [a.pod.uid for a in evictions if a.seat and a.pod and a.seat.pod.uid == waiting]:
            if not _over(snapshot, nodes[0], [*seated, *others], victims - {own}):
                found.append(f"{own} leaves for nothing")
    if evictions and not policy.methods.make_room:
        found.append("evicts though the method is off")
    return found


def _lets_in(snapshot: Snapshot, name: str, waiting: PodRow) -> list[str]:
    (host,) = [n for n in snapshot.nodes if n.name == name]
    shape = snapshot.shapes[waiting.shape]
    if host.unschedulable or host.deleting or not host.ready:
        return [f"{name} takes no pods"]
    if any(host.labels.get(key) != value for key, value in shape.node_selector.items()):
        return [f"{name} has not the labels that {waiting.name} asks for"]
    if any(t.effect in {"NoSchedule", "NoExecute"} for t in host.taints) and not shape.tolerations:
        return [f"{name} has a taint that {waiting.name} does not tolerate"]
    return []


def _over(snapshot: Snapshot, name: str, seated: list[PodRow], gone: set[str]) -> list[str]:
    """Components of the node that would be asked for too much, once the victims and all that is leaving have left."""
    (host,) = [n for n in snapshot.nodes if n.name == name]
    stay = [
        pod
        for pod in snapshot.pods
        if pod.node == name
        and not pod.deleting
        and pod.uid not in gone
        and pod.phase not in {"Succeeded", "Failed"}
    ]
    asked = Counter(host.taken)
    asked["pods"] += host.taken_pods
    for pod in (*stay, *seated):
        asked.update(snapshot.shapes[pod.shape].demand)
        asked["pods"] += 1
    wanted = {n for pod in seated for n in snapshot.shapes[pod.shape].demand} | {"pods"}
    return [n for n in wanted if asked[n] > host.allocatable.get(n, 0)]


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
    if action.lever == "deactivate":
        return action.pods
    if action.lever in {"scale", "bounds"}:
        return action.before - action.after
    if action.lever == "evict" or workload.ref.kind == "CronJob":
        return int(action.lever == "evict")
    if workload.ref.kind == "StatefulSet":
        return max(
            1, min(math.ceil(scaled(workload.rollout.max_unavailable, workload.replicas)), workload.replicas)
        )
    return _moves(workload.rollout, workload.replicas)[1]


def _disruptions(snapshot: Snapshot, plan: Plan, budget: Budget) -> list[str]:
    taken, found = 0, []
    for action in plan.actions:
        left = action.after if action.lever in {"scale", "bounds", "deactivate"} else 1
        pods = [p for p in live_pods(snapshot, action) if p.namespace == budget.namespace]
        if action.pod:
            pods, left = [p for p in pods if p.uid == action.pod.uid], 1
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
    rolling = [
        a
        for a in plan.actions
        if a.lever == "template" and a.target.kind != "CronJob" and a.target.namespace == quota.namespace
    ]
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
