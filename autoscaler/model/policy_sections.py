"""The sections of the policy: every number and duration that a decision uses, with its default and the reason for it.

The descriptions are published as the policy's JSON schema and in the docs.
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from autoscaler.model.duration import Duration
from autoscaler.model.plan import Method

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000

Ratio = Annotated[float, Meta(ge=0, le=1)]
Mode = Literal["observe", "recommend", "apply"]


MODES: Final[tuple[Mode, ...]] = ("observe", "recommend", "apply")
"""From the one that does the least."""


def strictest(modes: Iterable[Mode]) -> Mode:
    """The one that does the least."""
    return min(modes, key=MODES.index)


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A section of the policy file."""


class Resources(Section, frozen=True):
    """Which extended resources are accelerators and what one unit of each is."""

    boards: Annotated[
        tuple[str, ...],
        Meta(description="resources whose unit is a whole board; these are sized by count"),
    ] = (
        "nvidia.com/gpu",
        "amd.com/gpu",
        "gpu.intel.com/xe",
        "gpu.intel.com/i915",
        "habana.ai/gaudi",
        "huawei.com/Ascend910",
        "gpuconfig.com/gpu",
    )
    slices: Annotated[
        tuple[str, ...],
        Meta(
            description="prefixes of resources whose unit is a slice, a share or a vendor amount; reported, not sized"
        ),
    ] = ("nvidia.com/mig-", "nvidia.com/gpu.shared", "amd.com/cpx", "neureality.ai/")
    pod_selector: Annotated[
        str, Meta(description="label selector of the pods that are judged, e.g. gpu=true; empty judges all")
    ] = ""
    namespaces: Annotated[
        tuple[str, ...], Meta(description="namespaces that are judged; empty judges all")
    ] = ()
    namespace_selector: Annotated[
        str, Meta(description="label selector of the namespaces that are judged; empty judges all")
    ] = ""
    steps: Annotated[
        tuple[Annotated[int, Meta(ge=1)], ...],
        Meta(description="the ladder of board counts a unit may have; empty means every count"),
    ] = ()


class Evidence(Section, frozen=True):
    """When a unit counts as measured."""

    window: Annotated[
        Duration,
        Meta(description="the window that must be covered; 30m spans the pauses of interactive work"),
    ] = Duration(30 * MINUTE_MS)
    interval: Annotated[
        Duration, Meta(description="interval between samples; 0 measures it from the best covered series")
    ] = Duration(0)
    source_job: Annotated[
        str,
        Meta(
            description="regular expression of the scrape jobs whose GPU series are trusted; empty trusts one job only, "
            "and none where several publish them"
        ),
    ] = ""
    profiles: Annotated[
        tuple[str, ...],
        Meta(
            description="exporter profiles that are read, by name; empty reads all whose metrics the store holds"
        ),
    ] = ()
    min_coverage: Annotated[
        Ratio, Meta(description="samples seen / expected; 0.95 forgives one lost scrape in twenty")
    ] = 0.95
    max_lag: Annotated[
        Duration,
        Meta(description="ingestion lag forgiven on top of two scrapes; 5m is the store's own look-back"),
    ] = Duration(5 * MINUTE_MS)
    max_skew: Annotated[
        Duration, Meta(description="largest clock difference between API server and metrics store")
    ] = Duration(30_000)
    active_floor: Annotated[
        Ratio,
        Meta(description="a board at or over this counts as active; 0.05 is over the noise of idle contexts"),
    ] = 0.05
    idle_ceiling: Annotated[
        Ratio, Meta(description="peak activity at or under this is no activity; 0.01 is the gauges' rounding")
    ] = 0.01
    low_watermark: Annotated[
        Ratio,
        Meta(description="mean use under this is looked at; 0.30 is the practice this project starts from"),
    ] = 0.30
    saturation: Annotated[Ratio, Meta(description="mean use at or over this cannot show a higher demand")] = (
        0.97
    )
    fleet_coverage: Annotated[
        Ratio, Meta(description="share of units with usable samples below which nothing is taken away")
    ] = 0.80
    fleet_fall: Annotated[
        Ratio,
        Meta(
            description="share of the known units that may lose their samples, or their names on them, within fleetFallWithin; "
            "a fifth is more than one node or team, so it is the monitoring that fails; 1 means all of them"
        ),
    ] = 0.20
    fleet_fall_within: Annotated[
        Duration,
        Meta(
            description="time in which such a fall is an incident; slower than 5m is change, and fleetCoverage ends it"
        ),
    ] = Duration(5 * MINUTE_MS)


class Need(Section, frozen=True):
    """How much a unit requires; the chain is VPA's: percentile, margin, confidence, rounding."""

    target_utilization: Annotated[
        float,
        Meta(
            ge=0.01, le=1, description="busy share aimed at; 0.70 leaves room for bursts inside one interval"
        ),
    ] = 0.70
    memory_target: Annotated[
        float,
        Meta(
            ge=0.01,
            le=1,
            description="share of board memory that may be filled; 0.90 leaves room for fragments",
        ),
    ] = 0.90
    margin: Annotated[
        float,
        Meta(ge=0, le=10, description="added to the activity load; 0.15 is VPA's recommendation margin"),
    ] = 0.15
    history_window: Annotated[
        Duration,
        Meta(
            description="history that percentiles and peaks are taken over; a week holds weekends; lower it for a store that is slow"
        ),
    ] = Duration(7 * DAY_MS)
    confidence_unit: Annotated[
        Duration,
        Meta(description="history that counts as confidence 1; a day, since most load has a daily shape"),
    ] = Duration(DAY_MS)
    min_confidence: Annotated[
        float,
        Meta(
            ge=0, description="confidence below which nothing shrinks; three days of history span a weekend"
        ),
    ] = 3.0
    min_runs: Annotated[
        int,
        Meta(
            ge=1, description="completed runs a recurring job needs before it is judged; three show a spread"
        ),
    ] = 3


class Methods(Section, frozen=True):
    """Which methods may propose, and their floors."""

    right_size: Annotated[bool, Meta(description="fewer boards per pod")] = True
    scale_in: Annotated[bool, Meta(description="fewer replicas")] = True
    idle: Annotated[bool, Meta(description="idle workloads go to the floor their owner stated")] = True
    make_room: Annotated[
        bool, Meta(description="evictions for waiting pods of the classes in yield.beneficiaries")
    ] = True
    deactivate: Annotated[
        bool, Meta(description="idle workloads that Kueue has admitted give their quota back")
    ] = True
    autoscaler_bounds: Annotated[
        Literal["never", "agreed", "always"],
        Meta(
            description="scale-in and idle lower the minimum of a HorizontalPodAutoscaler that keeps replicas at it; agreed: where the owner stated min-replicas"
        ),
    ] = "never"
    idle_floor: Annotated[
        Duration, Meta(description="proven idleness before a release; a promise to tenants, never undercut")
    ] = Duration(30 * MINUTE_MS)
    start_grace: Annotated[
        Duration,
        Meta(
            description="a unit younger than this, or than the evidence window, is not judged; models load for minutes"
        ),
    ] = Duration(10 * MINUTE_MS)
    allow_zero_replicas: Annotated[
        bool,
        Meta(
            description="lets idle workloads go to 0 replicas, on proven idleness alone, without their own min-replicas annotation"
        ),
    ] = False
    savings_floor: Annotated[
        float,
        Meta(ge=0, description="boards that a change must save; a quarter board is not worth a restart"),
    ] = 0.25
    restart_factor: Annotated[
        float, Meta(ge=0, le=1000, description="saved board-hours must exceed this x boards x time to Ready")
    ] = 3.0


class Guards(Section, frozen=True):
    """Who is left alone."""

    priority_floor: Annotated[
        int | None,
        Meta(description="pods at or over this priority are never touched; null: only system priorities"),
    ] = None
    system_namespaces: Annotated[tuple[str, ...], Meta(description="namespaces that are never touched")] = (
        "kube-system",
        "kube-public",
        "kube-node-lease",
    )
    schedulers: Annotated[
        tuple[str, ...], Meta(description="schedulers whose placement rules are known here")
    ] = ("default-scheduler",)
    field_owners: Annotated[
        tuple[str, ...],
        Meta(
            description="managers (prefixes) that own the fields they wrote; kubectl, helm and terraform do not"
        ),
    ] = (
        "argocd-",
        "argo-rollouts",
        "flux",
        "kustomize-controller",
        "helm-controller",
        "keda-operator",
        "vpa-",
        "kuberay-operator",
        "kueue",
        "horizontal-pod-autoscaler",
    )
    max_protection: Annotated[
        Duration,
        Meta(
            description="marks on a workload or its pods protect a unit until it is this old, those on a namespace for ever; 0: all of them for ever"
        ),
    ] = Duration(0)
    cooldown: Annotated[
        Duration,
        Meta(description="at most one change per workload in this time; an hour shows a change's effect"),
    ] = Duration(HOUR_MS)
    ready_deadline: Annotated[
        Duration,
        Meta(
            description="time that changed pods are given to be ready, at least twice their former time to Ready; a large model loads for 30m"
        ),
    ] = Duration(30 * MINUTE_MS)
    probation: Annotated[
        Duration,
        Meta(
            description="time that changed pods must stay ready and unsaturated before the act counts as verified"
        ),
    ] = Duration(10 * MINUTE_MS)
    backoff: Annotated[
        Duration,
        Meta(
            description="a workload is left alone for this long after a failed act or an eviction, doubling each time"
        ),
    ] = Duration(HOUR_MS)
    max_backoff: Annotated[Duration, Meta(description="where the doubling ends; a day is a new start")] = (
        Duration(DAY_MS)
    )
    max_reversals: Annotated[
        int, Meta(ge=1, description="times that others put our change back before it counts as contested")
    ] = 2
    after_undo: Annotated[
        Duration,
        Meta(description="a workload that a person put back is left alone for this long; a day to say why"),
    ] = Duration(DAY_MS)
    freed_followed: Annotated[
        Duration,
        Meta(
            description="how long it is followed what becomes of the boards that a verified act freed; a day sees the next night's jobs"
        ),
    ] = Duration(DAY_MS)
    quiet_period: Annotated[
        Duration,
        Meta(
            description="nothing is changed for this long after a start or a change of leader; 10m is a look at the world"
        ),
    ] = Duration(10 * MINUTE_MS)
    node_wait: Annotated[
        Duration,
        Meta(
            description="make-room waits for a node that may fit and is younger than this; a GPU node takes minutes to start and to offer its boards"
        ),
    ] = Duration(5 * MINUTE_MS)
    node_autoscaler: Annotated[
        Literal["auto", "present", "absent"],
        Meta(
            description="whether waiting pods make somebody buy nodes; auto: where nodes bear the marks of Karpenter or cluster-autoscaler"
        ),
    ] = "auto"


class Budgets(Section, frozen=True):
    """How fast the fleet may change: rates, not only sizes."""

    in_flight: Annotated[
        int, Meta(ge=0, description="acts not yet verified; three are few enough to watch")
    ] = 3
    fleet_per_hour: Annotated[
        Ratio, Meta(description="share of the fleet's boards per hour, at least one board")
    ] = 0.02
    fleet_per_day: Annotated[
        Ratio, Meta(description="share of the fleet's boards per day, at least one board")
    ] = 0.10
    namespace_share: Annotated[
        Ratio, Meta(description="share of the hour's budget one namespace may use, at least one board")
    ] = 0.50
    pods_per_workload: Annotated[
        Ratio, Meta(description="share of a workload's replicas that may go at once, at least one")
    ] = 0.10
    fleet_per_hour_by_kind: Annotated[
        dict[Method, Ratio],
        Meta(
            description="share of the fleet's boards per hour that one kind of action may change, at least one; a kind without an entry has the fleet's"
        ),
    ] = {}
    pods_per_hour: Annotated[
        int,
        Meta(
            ge=0,
            description="pods that may be ended in an hour; 500 is far under the thousands of a restart storm",
        ),
    ] = 500
    acts_per_cycle: Annotated[
        int,
        Meta(
            ge=0,
            description="acts that one plan may begin; ten are read in a minute, and inFlight stops sooner",
        ),
    ] = 10
    max_doublings: Annotated[
        int,
        Meta(
            ge=0,
            le=6,
            description="fleetPerHour and fleetPerDay double after each clean day in a row (UTC; acts were verified and none went wrong), at most this often; 2 ends at 8 % and 40 %; 0 never",
        ),
    ] = 2


class FreezeWindow(Section, frozen=True):
    """A time in which nothing is changed; what was begun is still verified and put back."""

    schedule: Annotated[str, Meta(description="when it opens: cron (minute hour day month weekday)")]
    duration: Annotated[Duration, Meta(description="how long it stays open, in real time")]
    time_zone: Annotated[str, Meta(description="IANA time zone of the schedule")] = "UTC"
    methods: Annotated[tuple[Method, ...], Meta(description="kinds of action it holds back; empty: all")] = ()
    namespaces: Annotated[
        tuple[str, ...], Meta(description="namespaces it holds for, as the changed or the served; empty: all")
    ] = ()
    reason: Annotated[str, Meta(max_length=200, description="told with every refusal")] = ""


class Freeze(Section, frozen=True):
    """When nothing is changed."""

    windows: Annotated[
        tuple[FreezeWindow, ...],
        Meta(description="times in which nothing is changed; as an environment variable a JSON list"),
    ] = ()


class Yield(Section, frozen=True):
    """Who gives way when work of high priority waits, and for whom."""

    beneficiaries: Annotated[
        tuple[str, ...],
        Meta(
            description="priority classes (prefixes) room is made for, also where their preemptionPolicy is Never; the empty prefix means every class"
        ),
    ] = ("high-priority-",)
    classes: Annotated[
        tuple[str, ...],
        Meta(
            description="priority classes whose pods are the first to go, also for work of equal priority; gpu-burst is the practice this project starts from"
        ),
    ] = ("gpu-burst",)
    idle: Annotated[bool, Meta(description="lets proven idle units yield also to work of equal priority")] = (
        False
    )
    lower_priority: Annotated[
        bool, Meta(description="lets under-used units of strictly lower priority yield")
    ] = True


class Modes(Section, frozen=True):
    """What may be done; a method without an entry has the default mode."""

    default: Annotated[
        Mode, Meta(description="observe reports; recommend plans and explains; apply acts")
    ] = "recommend"
    make_room: Annotated[Mode | None, Meta(description="mode of make-room alone")] = None
    right_size: Annotated[Mode | None, Meta(description="mode of right-size alone")] = None
    scale_in: Annotated[Mode | None, Meta(description="mode of scale-in alone")] = None
    idle: Annotated[Mode | None, Meta(description="mode of idle alone")] = None
    deactivate: Annotated[Mode | None, Meta(description="mode of deactivate alone")] = None
    namespaces: Annotated[
        dict[str, Mode],
        Meta(
            description="modes of single namespaces, in place of the default; a kind of action with a mode of its own does the less of both"
        ),
    ] = {}

    @property
    def acting(self) -> bool:
        """Whether anything at all may be changed."""
        return "apply" in (*self.by_method.values(), *self.namespaces.values(), self.default)

    @property
    def by_method(self) -> dict[Method, Mode | None]:
        """The modes of single kinds of action; None where the default holds."""
        return {
            "make-room": self.make_room,
            "right-size": self.right_size,
            "scale-in": self.scale_in,
            "idle": self.idle,
            "deactivate": self.deactivate,
        }

    def applies(self, method: Method) -> bool:
        """Whether this kind of action is done anywhere."""
        own = self.by_method[method]
        return own == "apply" or (own is None and "apply" in (self.default, *self.namespaces.values()))

    def of(self, method: Method, namespace: str) -> Mode:
        """What may be done of this kind in a namespace."""
        own, here = self.by_method[method], self.namespaces.get(namespace, self.default)
        if own is None:
            return here
        return strictest((own, here)) if namespace in self.namespaces else own

    @property
    def in_words(self) -> str:
        """The default mode, and every kind of action that has another one."""
        others = [
            f"{kind} {mode}" for kind, mode in self.by_method.items() if mode not in {None, self.default}
        ]
        others += [f"namespace {name} {mode}" for name, mode in sorted(self.namespaces.items())]
        return ", ".join((self.default, *others))
