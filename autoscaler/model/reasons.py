"""The closed list of reason codes, each with its meaning and, where a person can act, a remedy."""

from enum import StrEnum
from typing import Final

import msgspec


class Reason(StrEnum):
    """Why something is done or refused; used alike in plans, metrics, events, docs and pages."""

    RIGHT_SIZED = "RightSized"
    SCALED_IN = "ScaledIn"
    SCALED_OUT = "ScaledOut"
    RELEASED = "Released"
    WOKEN = "Woken"
    MADE_ROOM = "MadeRoom"
    MOVED = "Moved"
    EVICTED = "Evicted"
    REVERTED = "Reverted"
    UNDONE = "Undone"

    EVIDENCE_ABSENT = "EvidenceAbsent"
    EVIDENCE_PARTIAL = "EvidencePartial"
    EVIDENCE_STALE = "EvidenceStale"
    EVIDENCE_UNATTRIBUTED = "EvidenceUnattributed"
    EVIDENCE_CONTRADICTORY = "EvidenceContradictory"
    SHARED_BOARD = "SharedBoard"
    THIN_HISTORY = "ThinHistory"
    FLEET_BLIND = "FleetBlind"
    QUIET_PERIOD = "QuietPeriod"
    PROTECTED = "Protected"
    SYSTEM_POD = "SystemPod"
    PRIORITY_FLOOR = "PriorityFloor"
    QUOTA_SHORT = "QuotaShort"
    LIMIT_RANGE = "LimitRange"
    NO_PLACEMENT = "NoPlacement"
    NO_SURGE = "NoSurge"
    DISRUPTION_BUDGET = "DisruptionBudget"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"
    NOT_READY = "NotReady"
    GANG_MEMBER = "GangMember"
    OTHER_OWNER = "OtherOwner"
    CONTESTED = "Contested"
    KUEUE = "Kueue"
    COOLDOWN = "Cooldown"
    EVICTION_MEMORY = "EvictionMemory"
    BUDGET_SPENT = "BudgetSpent"
    FREEZE_WINDOW = "FreezeWindow"
    PAUSED = "Paused"
    BELOW_SAVINGS_FLOOR = "BelowSavingsFloor"
    MEMORY_GATE = "MemoryGate"
    LADDER_END = "LadderEnd"
    NO_LEVER = "NoLever"
    NEEDS_CONSENT = "NeedsConsent"
    WOULD_FAIL_JOB = "WouldFailJob"
    FOREIGN_SCHEDULER = "ForeignScheduler"
    VOLUME_BOUND = "VolumeBound"
    NODE_ON_ITS_WAY = "NodeOnItsWay"
    NOT_WORTH_RESTART = "NotWorthRestart"
    SUPERSEDED = "Superseded"
    LEDGER_UNREADABLE = "LedgerUnreadable"
    CLOCK_SKEW = "ClockSkew"
    FORBIDDEN = "Forbidden"
    MODE_RECOMMEND = "ModeRecommend"


ACTING: Final = frozenset(
    {
        Reason.RIGHT_SIZED,
        Reason.SCALED_IN,
        Reason.SCALED_OUT,
        Reason.RELEASED,
        Reason.WOKEN,
        Reason.MADE_ROOM,
        Reason.MOVED,
        Reason.EVICTED,
        Reason.REVERTED,
        Reason.UNDONE,
    }
)


class ReasonEntry(msgspec.Struct, frozen=True):
    """What a reason code says and what would change the answer (empty where only time or the owner can)."""

    meaning: str
    remedy: str = ""


CATALOGUE: Final[dict[Reason, ReasonEntry]] = {
    Reason.RIGHT_SIZED: ReasonEntry("the pod template asks for fewer or more accelerators"),
    Reason.SCALED_IN: ReasonEntry("fewer replicas carry the same load"),
    Reason.SCALED_OUT: ReasonEntry("more replicas for a sustained demand"),
    Reason.RELEASED: ReasonEntry("proven idle: scaled to the floor its owner stated, or given back to Kueue"),
    Reason.WOKEN: ReasonEntry("a released workload was put back for new demand"),
    Reason.MADE_ROOM: ReasonEntry("freed a seat for waiting work of higher priority"),
    Reason.MOVED: ReasonEntry("moved to a proven new place"),
    Reason.EVICTED: ReasonEntry("evicted through the Eviction API"),
    Reason.REVERTED: ReasonEntry("verification failed and the former state was put back"),
    Reason.UNDONE: ReasonEntry("put back on an operator's request"),
    Reason.EVIDENCE_ABSENT: ReasonEntry(
        "no sample of the unit's accelerators exists in the window: unknown is not idle",
        "check that the GPU exporter runs on the unit's node and is scraped",
    ),
    Reason.EVIDENCE_PARTIAL: ReasonEntry(
        "samples exist, but too few, of too few boards, or the store answered with warnings",
        "check scrape health; coverage must reach the policy's evidence.minCoverage for every board held",
    ),
    Reason.EVIDENCE_STALE: ReasonEntry(
        "the newest sample is older than two scrapes and the ingestion lag",
        "check the scrape target and the store's ingestion lag",
    ),
    Reason.EVIDENCE_UNATTRIBUTED: ReasonEntry(
        "series exist that cannot be tied to the pod that held the device",
        "let the exporter publish pod and namespace labels (honorLabels, or exported_pod)",
    ),
    Reason.EVIDENCE_CONTRADICTORY: ReasonEntry(
        "signals disagree: activity is zero while power, traffic or an un-owned busy board says otherwise",
        "check the exporter's profiling module and the mapping of devices to pods",
    ),
    Reason.SHARED_BOARD: ReasonEntry(
        "several pods share the board, so its figures are no single pod's use",
        "use hardware slices or per-process accounting",
    ),
    Reason.THIN_HISTORY: ReasonEntry(
        "too little history to be sure; nothing shrinks on thin history",
        "wait: confidence grows with every confidence unit of history",
    ),
    Reason.FLEET_BLIND: ReasonEntry(
        "too small a share of the fleet is measured, or much of it lost its samples or their names at once, or no full window "
        "has passed since: an incident of the monitoring, not idleness",
        "restore what the exporter or the metrics store lost; a full fresh window comes first",
    ),
    Reason.QUIET_PERIOD: ReasonEntry("the service has just started"),
    Reason.PROTECTED: ReasonEntry(
        "the owner's mark forbids disruption", "remove the named annotation, or let its time run out"
    ),
    Reason.SYSTEM_POD: ReasonEntry("system, mirror and DaemonSet pods are never touched"),
    Reason.PRIORITY_FLOOR: ReasonEntry(
        "the pod's priority is at or over the policy's floor", "lower guards.priorityFloor"
    ),
    Reason.QUOTA_SHORT: ReasonEntry(
        "the change, with the surge pods of its rollout, does not fit the namespace's ResourceQuota",
        "raise the quota by the stated amount, or set maxSurge to 0",
    ),
    Reason.LIMIT_RANGE: ReasonEntry("the new amount is outside the namespace's LimitRange"),
    Reason.NO_PLACEMENT: ReasonEntry(
        "no node fits the pod, or nobody there yields to it",
        "free a node of the kind it asks for, or see the yield section of the policy",
    ),
    Reason.NO_SURGE: ReasonEntry(
        "the rollout needs a surge pod and no node has room for it",
        "free a board, or allow maxUnavailable for this workload",
    ),
    Reason.DISRUPTION_BUDGET: ReasonEntry(
        "a PodDisruptionBudget leaves no headroom for it",
        "wait until its pods are healthy, or widen the named budget; no pod should match two of them",
    ),
    Reason.ROLLOUT_IN_PROGRESS: ReasonEntry("a rollout is under way or paused"),
    Reason.NOT_READY: ReasonEntry("a replica is pending, not ready or terminating"),
    Reason.GANG_MEMBER: ReasonEntry("a gang lives and dies together; one member is never touched"),
    Reason.OTHER_OWNER: ReasonEntry(
        "another controller owns the field", "change that owner's bounds, or take the field from it"
    ),
    Reason.CONTESTED: ReasonEntry(
        "others put our change back too often; we stopped",
        "settle with its owner who may change it, then `gpu-autoscaler undo NAMESPACE/NAME` forgets the dispute",
    ),
    Reason.KUEUE: ReasonEntry(
        "Kueue manages the workload: it waits in a queue, is stopped, or cannot be released through one Workload",
        "see what Kueue says of its Workload; what is queued holds no board",
    ),
    Reason.COOLDOWN: ReasonEntry(
        "the workload was changed lately, its last change is not verified yet, or it was put back",
        "wait, or lower guards.cooldown",
    ),
    Reason.EVICTION_MEMORY: ReasonEntry(
        "it was evicted lately; the back-off is running", "wait, or lower guards.backoff"
    ),
    Reason.BUDGET_SPENT: ReasonEntry(
        "the budget of changes for this hour, day, namespace or workload is spent",
        "wait, or raise the budgets section of the policy",
    ),
    Reason.FREEZE_WINDOW: ReasonEntry("a freeze window is open"),
    Reason.PAUSED: ReasonEntry("an operator paused the service", "gpu-autoscaler resume"),
    Reason.BELOW_SAVINGS_FLOOR: ReasonEntry("it uses what it holds: the saving is below the policy's floor"),
    Reason.MEMORY_GATE: ReasonEntry("the memory it holds would not fit the smaller amount"),
    Reason.LADDER_END: ReasonEntry("it already holds the smallest step of its ladder"),
    Reason.NO_LEVER: ReasonEntry(
        "there is no lawful way to change this kind in place",
        "run it under a Deployment, StatefulSet or suspended Job",
    ),
    Reason.NEEDS_CONSENT: ReasonEntry(
        "the accelerator count is part of the application; its owner has to agree",
        'set annotation gpu-autoscaler.io/allowed-gpus, e.g. "1,2,4"',
    ),
    Reason.WOULD_FAIL_JOB: ReasonEntry(
        "the eviction would fail the Job for good", "raise its backoffLimit, or suspend the Job instead"
    ),
    Reason.FOREIGN_SCHEDULER: ReasonEntry("another scheduler places this pod; its rules are not known here"),
    Reason.VOLUME_BOUND: ReasonEntry("a volume ties the pod to where it is"),
    Reason.NODE_ON_ITS_WAY: ReasonEntry("a fitting node is being provisioned"),
    Reason.NOT_WORTH_RESTART: ReasonEntry("the restart costs more board-hours than the change saves"),
    Reason.SUPERSEDED: ReasonEntry("the live value is no longer the one we set"),
    Reason.LEDGER_UNREADABLE: ReasonEntry(
        "the ledger cannot be read, so it is not known what was done before",
        "repair or remove the named ConfigMap; nothing is changed until then",
    ),
    Reason.CLOCK_SKEW: ReasonEntry(
        "the clocks of the API server and the metrics store disagree", "repair time synchronisation"
    ),
    Reason.FORBIDDEN: ReasonEntry(
        "the service's identity lacks a right that the judgement needs",
        "grant list and watch on the named kind",
    ),
    Reason.MODE_RECOMMEND: ReasonEntry(
        "the mode lets nothing be changed: the service reports, or plans and explains"
    ),
}
