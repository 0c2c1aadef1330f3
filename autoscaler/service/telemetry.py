"""The service's own metrics: what it saw, asked, decided and how long that took.

No pod, uid or workload name is ever a label: that detail is in the plan. Series exist from the first scrape on, so that
a rate over them is never empty.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from autoscaler import __version__
from autoscaler.model.evidence import Telemetry
from autoscaler.model.ledger import FATES, Fate
from autoscaler.model.plan import Plan
from autoscaler.model.reasons import ACTING, Reason
from autoscaler.observe.history.seeding import Progress
from autoscaler.service.evidence_metrics import EvidenceMetrics
from autoscaler.service.readiness import CHECK_NAMES, CheckResult

P: Final = "gpu_autoscaler_"
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""As controller-runtime has them."""
STEPS: Final = ("policy", "query", "freeze", "assemble", "decide", "publish")
QUERIES: Final = (
    *("avg_over_time", "count_over_time", "max_over_time", "min_over_time", "quantile_over_time"),
    *("sum_over_time", "timestamp", "time", "count", "other"),
)
"""Functions by which queries are told apart: few, whatever metrics the profiles name."""
OUTCOMES: Final = ("ok", "empty", "nan", "stale", "timeout", "error", "partial")
_ACTIONS: Final = (
    ("make-room", Reason.MADE_ROOM),
    ("right-size", Reason.RIGHT_SIZED),
    ("scale-in", Reason.SCALED_IN),
    ("idle", Reason.RELEASED),
    ("deactivate", Reason.RELEASED),
)
RESULTS: Final = ("done", "refused", "conflict", "gone", "unknown")
ENDS: Final = ("verified", "failed", "dropped", "superseded", "gone", "reverted", "reversed")
"""How an act ended, long after it was sent."""
_MODES: Final = ("observe", "recommend", "apply")


class Metrics:
    """All own metrics in one registry; methods are named after what happened."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        # A `_created` beside every series doubles their number and tells nobody anything.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library left it out
        self.registry = CollectorRegistry()
        self.now_s = clock
        self._seen_actions: frozenset[str] = frozenset()
        self._resources: set[str] = set()
        self._build()
        self._precreate()

    def _build(self) -> None:
        r = self.registry
        self._build_info = Gauge(P + "build_info", "This build.", ("version", "python"), registry=r)
        self._config_info = Gauge(
            P + "config_info", "The policy in force.", ("mode", "policy_hash"), registry=r
        )
        self._ready = Gauge(P + "ready", "Whether a readiness check holds.", ("check",), registry=r)
        self._queries = Counter(
            P + "prom_queries", "Answers by the metrics store.", ("query", "outcome"), registry=r
        )
        self._query_time = Histogram(
            P + "prom_query_duration_seconds", "Time of a query.", ("query",), buckets=BUCKETS, registry=r
        )
        self._prom_success = Gauge(
            P + "prom_last_success_timestamp_seconds", "When every query was last answered.", registry=r
        )
        self._candidates = Gauge(
            P + "candidates", "Workloads in the newest plan.", ("verdict", "reason"), registry=r
        )
        self._decisions = Counter(
            P + "decisions", "Actions that entered a plan.", ("action", "reason", "mode"), registry=r
        )
        self._decision_time = Histogram(
            P + "decision_duration_seconds", "Time of the planner.", buckets=BUCKETS, registry=r
        )
        self._step_time = Histogram(
            P + "cycle_step_duration_seconds",
            "Time of a cycle's step.",
            ("step",),
            buckets=BUCKETS,
            registry=r,
        )
        self._reaction = Histogram(
            P + "event_to_decision_seconds", "From an event to the plan.", buckets=BUCKETS, registry=r
        )
        self._cycles = Counter(P + "cycles", "Cycles by what started them.", ("trigger",), registry=r)
        self._requests = Counter(
            P + "api_requests", "Requests to the API server.", ("verb", "resource", "code"), registry=r
        )
        self._lag = Histogram(
            P + "event_loop_lag_seconds",
            "How late the event loop was.",
            buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
            registry=r,
        )
        self._task_deaths = Counter(
            P + "task_exceptions", "Background tasks that died.", ("task",), registry=r
        )
        self._evidence = EvidenceMetrics(r, P)
        self._build_acting(r)
        gauges = (
            ("requested", "Held by workloads"),
            ("idle", "Held and proven idle"),
            ("reclaimable", "Saved by the plan"),
        )
        self._boards = {
            name: Gauge(f"{P}gpus_{name}", f"{text}, in units of the resource.", ("resource",), registry=r)
            for name, text in gauges
        }

    def _build_acting(self, r: CollectorRegistry) -> None:
        self._leader = Gauge(P + "leader", "Whether this process leads.", registry=r)
        self._paused = Gauge(P + "paused", "Whether an operator paused the service.", registry=r)
        self._acts = Counter(
            P + "actions", "Acts by how the attempt ended.", ("action", "result", "reason"), registry=r
        )
        self._act_time = Histogram(
            P + "action_duration_seconds", "Time of one attempt.", ("action",), buckets=BUCKETS, registry=r
        )
        self._act_ends = Counter(
            P + "action_ends", "Acts by what became of them.", ("action", "end"), registry=r
        )
        self._evictions = Counter(
            P + "eviction_requests", "Answers of the Eviction API.", ("code",), registry=r
        )
        self._open_acts = Gauge(P + "open_actions", "Acts that are not verified yet.", registry=r)
        self._contested = Gauge(
            P + "contested_workloads", "Workloads whose changes others put back too often.", registry=r
        )
        self._freed = Gauge(
            P + "freed_boards",
            "Boards that verified acts in the ledger freed, by what became of them.",
            ("fate",),
            registry=r,
        )
        self._events_dropped = Counter(
            P + "events_dropped", "Events that were not written.", ("cause",), registry=r
        )
        for code in ("201", "429", "500"):
            self._evictions.labels(code)
        for cause in ("rate", "queue", "authority", "error"):
            self._events_dropped.labels(cause)

    def _precreate(self) -> None:
        self._build_info.labels(__version__, platform.python_version()).set(1)
        for check in CHECK_NAMES:
            self._ready.labels(check).set(0)
        for reason in Reason:
            self._candidates.labels(_verdict(reason), reason.value).set(0)
        for action, reason in _ACTIONS:
            for mode in _MODES:
                self._decisions.labels(action, reason.value, mode)
            self._acts.labels(action, "done", reason.value)
            for result in RESULTS[1:]:
                self._acts.labels(action, result, "")
            for end in ENDS:
                self._act_ends.labels(action, end)
            self._act_time.labels(action)
        for query, outcome in product(QUERIES, OUTCOMES):
            self._query_time.labels(query)
            self._queries.labels(query, outcome)
        for step in STEPS:
            self._step_time.labels(step)
        for trigger in ("timer", "event"):
            self._cycles.labels(trigger)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Times one named step of a cycle; safe to use in a worker thread."""
        began_s = self.now_s()
        try:
            yield
        finally:
            took_s = self.now_s() - began_s
            self._step_time.labels(name).observe(took_s)
            if name == "decide":
                self._decision_time.observe(took_s)

    def policy_in_force(self, *, mode: str, digest: str) -> None:
        """The policy changed."""
        self._config_info.clear()
        self._config_info.labels(mode, digest).set(1)

    def checks(self, results: Iterable[CheckResult]) -> None:
        """The state of readiness; a group holds when all of its checks do."""
        groups: dict[str, bool] = {}
        for result in results:
            groups[result.group] = groups.get(result.group, True) and result.ok
        for group, ok in groups.items():
            self._ready.labels(group).set(ok)

    def query_answered(self, query: str, outcome: str, seconds: float) -> None:
        """The metrics store answered, or did not."""
        self._queries.labels(query, outcome if outcome in OUTCOMES else "error").inc()
        self._query_time.labels(query).observe(seconds)

    def metrics_read(self, now_ms: int) -> None:
        """Every query of a cycle was answered."""
        self._prom_success.set(now_ms / 1000)

    def api_request(self, *, verb: str, resource: str, code: str) -> None:
        """A request to the API server ended."""
        self._requests.labels(verb, resource, code).inc()

    def leads(self, *, leads: bool) -> None:
        """This process leads, or no longer does; figures of the fleet are the leader's alone."""
        self._leader.set(leads)
        if leads:
            return
        for gauge in self._boards.values():
            gauge.clear()
        self._resources.clear()
        for reason in Reason:
            self._candidates.labels(_verdict(reason), reason.value).set(0)
        self._evidence.forget()
        for figure in (self._paused, self._open_acts, self._contested):
            figure.set(0)
        self._tell_freed({})

    def _tell_freed(self, freed: Mapping[Fate, int]) -> None:
        for fate in FATES:
            self._freed.labels(fate).set(freed.get(fate, 0))

    def memory(self, *, paused: bool, open_acts: int, contested: int, freed: Mapping[Fate, int]) -> None:
        """What the ledger says now."""
        self._paused.set(paused)
        self._open_acts.set(open_acts)
        self._contested.set(contested)
        self._tell_freed(freed)

    def act_attempted(self, action: str, *, result: str, reason: str, seconds: float) -> None:
        """An act was tried."""
        self._acts.labels(action, result, reason).inc()
        self._act_time.labels(action).observe(seconds)

    def act_ended(self, action: str, end: str) -> None:
        """It is known what became of an act."""
        self._act_ends.labels(action, end).inc()

    def eviction_answered(self, code: str) -> None:
        """The Eviction API answered, or did not."""
        self._evictions.labels(code).inc()

    def event_dropped(self, cause: str) -> None:
        """An Event was not written."""
        self._events_dropped.labels(cause).inc()

    def loop_lag(self, seconds: float) -> None:
        """The event loop was so late."""
        self._lag.observe(max(0.0, seconds))

    def task_died(self, task: str) -> None:
        """A background task ended with an exception."""
        self._task_deaths.labels(task).inc()

    def cycle_ended(self, plan: Plan, *, trigger: str, reaction_s: float | None) -> None:
        """A plan was made."""
        self._cycles.labels(trigger).inc()
        if reaction_s is not None:
            self._reaction.observe(reaction_s)
        self._evidence.planned(plan)
        self._count_candidates(plan)
        self._count_decisions(plan)
        self._count_boards(plan)

    def history_read(self, progress: Progress) -> None:
        """A piece of the workloads' history was asked for."""
        self._evidence.remembered(progress)

    def evidence_read(self, telemetry: Telemetry) -> None:
        """What a reading could not use: series without an owner and values that are none."""
        self._evidence.read(telemetry)

    def _count_candidates(self, plan: Plan) -> None:
        counts = dict.fromkeys(Reason, 0)
        for row in plan.rows:
            counts[row.reason] += 1
        for reason, count in counts.items():
            self._candidates.labels(_verdict(reason), reason.value).set(count)

    def _count_decisions(self, plan: Plan) -> None:
        """An action counts when it enters the plan, not again while it stays there."""
        for action in plan.actions:
            if action.id not in self._seen_actions:
                mode = "recommend" if Reason.MODE_RECOMMEND in action.held_by else "apply"
                self._decisions.labels(action.method, action.reason.value, mode).inc()
        self._seen_actions = frozenset(action.id for action in plan.actions)

    def _count_boards(self, plan: Plan) -> None:
        requested: dict[str, float] = {}
        idle: dict[str, float] = {}
        saved: dict[str, float] = {}
        for row in plan.rows:
            requested[row.resource] = requested.get(row.resource, 0) + row.held
            if row.verdict == "idle":
                idle[row.resource] = idle.get(row.resource, 0) + row.held
            if row.action is not None:
                saved[row.resource] = saved.get(row.resource, 0) + row.action.saved_milli_boards / 1000
        self._resources |= requested.keys()
        for resource in self._resources:
            for name, amounts in (("requested", requested), ("idle", idle), ("reclaimable", saved)):
                self._boards[name].labels(resource).set(amounts.get(resource, 0))


def _verdict(reason: Reason) -> str:
    return "act" if reason in ACTING else "hold"
