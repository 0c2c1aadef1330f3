from build import NOW_MS, Spec, boards, cluster, policy
from hypothesis import given
from worlds import policies, worlds

from autoscaler.decide import plan
from autoscaler.decide.explain import leading_refusal
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.evidence import Source
from autoscaler.model.plan import ExplainRow, Refusal
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import CATALOGUE, Reason
from autoscaler.model.snapshot import Snapshot

REF = WorkloadRef("apps", "Deployment", "team", "web")


def refusal(reason: Reason, guard: str = "g", **changes: object) -> Refusal:
    return Refusal(REF, changes.get("method"), reason, guard, "e")  # type: ignore[arg-type]


def only(spec: Spec, **sections: object) -> ExplainRow:
    source = Source("dcgm", "engine", 15_000, interval_measured=True, queries=("max(x)", "avg(x)"))
    (row,) = plan(cluster(spec, sources=(source,)), policy(**sections), NOW_MS).rows  # type: ignore[arg-type]
    return row


def test_a_row_shows_what_the_judgement_rests_on() -> None:
    row = only(Spec(gpus=2, seen=(boards(0.5, 0.0),) * 2))

    assert (row.units, row.held, row.verdict, row.use_ratio, row.coverage) == (2, 4, "under-used", 0.25, 1.0)
    assert (row.signal, row.queries) == ("engine", ("max(x)", "avg(x)"))
    assert row.need is not None
    assert row.need.activity == 715


def test_an_action_s_row_has_its_reason_and_no_refusals() -> None:
    row = only(Spec(gpus=2, seen=(boards(0.5, 0.0),)))

    assert (
        row.reason,
        row.detail,
        row.remedy,
        row.refusals,
    ) == ("RightSized", "needs at most 0.85 boards, holds 2", "", ())
    assert all(check.passed for check in row.checks)
    assert {"evidence", "quota", "placement", "budget", "mode"} <= {check.rule for check in row.checks}


def test_a_refused_row_has_the_reason_evidence_and_remedy_of_its_leading_refusal() -> None:
    row = only(Spec(gpus=2, seen=(boards(0.1, 0.1),)))

    assert row.action is None
    assert (row.reason, row.detail, row.remedy) == (
        row.refusals[0].reason,
        row.refusals[0].evidence,
        row.refusals[0].remedy,
    )
    assert [check.passed for check in row.checks if check.rule == "right-size"] == [False]


def test_with_no_method_switched_on_the_row_says_so() -> None:
    off = {"rightSize": False, "scaleIn": False, "idle": False}
    row = only(Spec(gpus=2, seen=(boards(0.5, 0.0),)), methods=off)

    assert (row.reason, row.detail) == ("BelowSavingsFloor", "no method is switched on")
    assert CATALOGUE[Reason.BELOW_SAVINGS_FLOOR].remedy == row.remedy


def test_a_method_that_ends_the_road_is_told_only_if_nothing_else_is() -> None:
    end, floor, thin = (
        refusal(Reason.LADDER_END),
        refusal(Reason.BELOW_SAVINGS_FLOOR),
        refusal(Reason.THIN_HISTORY),
    )

    assert leading_refusal([]) is None
    assert thin is leading_refusal([end, floor, thin])
    assert end is leading_refusal([end, floor])


def test_what_kind_it_is_and_how_it_is_used_go_first() -> None:
    lever, busy = refusal(Reason.NO_LEVER, "lever"), refusal(Reason.BELOW_SAVINGS_FLOOR, "low watermark")
    thin = refusal(Reason.THIN_HISTORY)

    assert lever is leading_refusal([lever, thin])
    assert busy is leading_refusal([busy, thin])


def test_a_refused_change_goes_before_a_method_s_end() -> None:
    change = refusal(Reason.BELOW_SAVINGS_FLOOR, method="right-size")

    assert change is leading_refusal([change, refusal(Reason.THIN_HISTORY)])


@given(worlds(), policies())
def test_every_row_has_a_reason_and_every_refusal_is_in_the_plan(snapshot: Snapshot, rules: Policy) -> None:
    planned = plan(snapshot, rules, NOW_MS)

    assert planned.refusals == tuple(refusal for row in planned.rows for refusal in row.refusals)
    for row in planned.rows:
        assert row.detail
        assert all(check.rule and check.detail for check in row.checks)
        assert all(refusal.evidence and refusal.target == row.workload for refusal in row.refusals)
        assert row.action is None or all(row.workload != refusal.target for refusal in row.refusals)
        assert row.held >= 0
