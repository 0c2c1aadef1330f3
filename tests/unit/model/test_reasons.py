from autoscaler.model.reasons import ACTING, CATALOGUE, Reason

ACTING_CODES = [
    "RightSized",
    "ScaledIn",
    "ScaledOut",
    "Released",
    "Woken",
    "MadeRoom",
    "Moved",
    "Evicted",
    "Reverted",
    "Undone",
]
REFUSING_CODES = [
    "EvidenceAbsent",
    "EvidencePartial",
    "EvidenceStale",
    "EvidenceUnattributed",
    "EvidenceContradictory",
    "SharedBoard",
    "ThinHistory",
    "FleetBlind",
    "QuietPeriod",
    "Protected",
    "SystemPod",
    "PriorityFloor",
    "QuotaShort",
    "LimitRange",
    "NoPlacement",
    "NoSurge",
    "DisruptionBudget",
    "RolloutInProgress",
    "NotReady",
    "GangMember",
    "OtherOwner",
    "Contested",
    "Kueue",
    "Cooldown",
    "EvictionMemory",
    "BudgetSpent",
    "FreezeWindow",
    "Paused",
    "BelowSavingsFloor",
    "MemoryGate",
    "LadderEnd",
    "NoLever",
    "NeedsConsent",
    "WouldFailJob",
    "ForeignScheduler",
    "VolumeBound",
    "NodeOnItsWay",
    "NotWorthRestart",
    "Superseded",
    "LedgerUnreadable",
    "ClockSkew",
    "Forbidden",
    "ModeRecommend",
]


def test_the_list_of_reasons_is_the_design_s_and_closed() -> None:
    assert [reason.value for reason in Reason if reason in ACTING] == ACTING_CODES
    assert [reason.value for reason in Reason if reason not in ACTING] == REFUSING_CODES


def test_every_reason_has_a_meaning() -> None:
    assert list(Reason) == list(CATALOGUE)
    assert all(entry.meaning for entry in CATALOGUE.values())


def test_acting_reasons_need_no_remedy() -> None:
    assert {""} == {CATALOGUE[reason].remedy for reason in ACTING}
