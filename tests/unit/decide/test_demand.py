"""What inference servers say beside, instead of and against the accelerators' own figures."""

from dataclasses import replace

import msgspec
import pytest
from build import NOW_MS, Board, Spec, boards, cluster, node, policy

from autoscaler.decide import plan
from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.model.evidence import (
    CLAMPED,
    CROWDED,
    FROZEN,
    UNPROVEN,
    ServingUse,
    UnownedDevice,
)
from autoscaler.model.plan import ExplainRow
from autoscaler.model.snapshot import Snapshot

MAY_GO = {MIN_REPLICAS: "0"}
IDLE = Spec(annotations=MAY_GO, seen=(boards(0.0),))


def served(snapshot: Snapshot, *uses: ServingUse) -> Snapshot:
    return msgspec.structs.replace(
        snapshot, telemetry=msgspec.structs.replace(snapshot.telemetry, serving=uses)
    )


def use(pod: int = 0, **values: float | None) -> ServingUse:
    known = {"queue_peak": 0.0, "running_peak": 0.0, "counter_moves": 0, "samples": 120, "expected": 114}
    return ServingUse(pod=pod, server="vllm", **{**known, **values})  # type: ignore[arg-type]


def judged(spec: Spec, *uses: ServingUse) -> ExplainRow:
    planned = plan(served(cluster(spec), *uses), policy(), NOW_MS)
    return next(row for row in planned.rows if row.workload.name == spec.name)


def test_boards_at_rest_with_a_server_at_rest_are_idle() -> None:
    assert judged(IDLE, use()).verdict == "idle"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"counter_moves": 480}, "EvidenceContradictory"),
        ({"queue_peak": 3.0}, "EvidenceContradictory"),
        ({"cache_peak": 4_400}, "EvidenceContradictory"),
        ({"samples": 60}, "EvidencePartial"),
        ({"expected": 0}, "EvidencePartial"),
    ],
)
def test_any_sign_of_use_or_a_gap_vetoes_idle(values: dict[str, float], reason: str) -> None:
    row = judged(IDLE, use(**values))

    assert (row.verdict, row.reason, row.action) == ("unknown", reason, None)


def test_a_server_speaks_for_boards_at_rest_only() -> None:
    assert judged(Spec(seen=(boards(0.5),)), use(counter_moves=480)).verdict == "busy"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [({"queue_peak": 200.0}, "busy"), ({"cache_peak": 9_000}, "busy"), ({}, "under-used")],
)
def test_less_only_when_all_known_signals_are_under(values: dict[str, float], verdict: str) -> None:
    row = judged(Spec(gpus=2, seen=(boards(0.24, 0.0),)), use(running_peak=16.0, **values))

    assert (row.verdict, row.action is None) == (verdict, verdict == "busy")


@pytest.mark.parametrize(
    ("uses", "verdict"),
    [
        ((use(queue_peak=60.0),), "busy"),
        ((use(),), "idle"),
        ((use(counter_moves=None),), "unknown"),
        ((), "unknown"),
    ],
)
def test_servers_alone_give_a_verdict_and_never_an_act(uses: tuple[ServingUse, ...], verdict: str) -> None:
    row = judged(Spec(annotations=MAY_GO, seen=(None,)), *uses)

    assert (row.verdict, row.reason, row.action) == (verdict, "EvidenceAbsent", None)


def test_a_silent_replica_beside_a_measured_one_is_not_idle_by_its_server() -> None:
    spec = Spec(annotations=MAY_GO, seen=(boards(0.0), None))

    assert judged(spec, use(pod=1)).verdict == "unknown"
    assert judged(spec, use(pod=1, queue_peak=1.0)).verdict == "busy"


def test_partial_figures_of_boards_are_not_replaced_by_a_server() -> None:
    assert judged(Spec(annotations=MAY_GO, seen=(boards(0.0, coverage=0.5),)), use()).verdict == "unknown"


@pytest.mark.parametrize(
    ("flag", "reason", "told"),
    [
        (FROZEN, "EvidenceStale", "the energy counter has not moved"),
        (UNPROVEN, "EvidencePartial", "a share's activity is 0"),
        (CROWDED, "SharedBoard", "hold more boards than have samples"),
    ],
)
def test_what_an_exporter_cannot_know_is_no_idleness(flag: int, reason: str, told: str) -> None:
    row = judged(IDLE.but(seen=(boards(0.0, flags=flag),)))

    assert (row.verdict, row.reason) == ("unknown", reason)
    assert told in row.detail


def test_use_of_a_share_is_measured_by_the_share_and_nothing_is_done_with_it() -> None:
    shared = tuple(replace(board, device="x#0") for board in boards(0.13))
    snapshot = cluster(Spec(seen=(shared,)))
    table = msgspec.structs.replace(snapshot.holders, shares=snapshot.holders.shares * 4)
    row = plan(msgspec.structs.replace(snapshot, holders=table), policy(), NOW_MS).rows[0]

    assert (row.verdict, row.use_ratio, row.reason, row.action) == ("busy", 0.52, "SharedBoard", None)


def test_a_slice_under_the_name_of_a_whole_board_is_never_sized() -> None:
    sliced = (Board(mean=0.0, device="x/7"),)
    row = judged(IDLE.but(seen=(sliced,)))

    assert (row.verdict, row.reason, row.action) == ("idle", "SharedBoard", None)


def test_boards_that_name_neither_pod_nor_node_make_what_is_missing_unattributed() -> None:
    snapshot = cluster(Spec(seen=(None,)))
    telemetry = msgspec.structs.replace(snapshot.telemetry, unowned=(UnownedDevice("x", "", 0),))
    row = plan(msgspec.structs.replace(snapshot, telemetry=telemetry), policy(), NOW_MS).rows[0]

    assert (row.verdict, row.reason) == ("unknown", "EvidenceUnattributed")


def test_a_partial_answer_lets_no_server_prove_anything() -> None:
    snapshot = served(cluster(Spec(annotations=MAY_GO, seen=(None,))), use())
    telemetry = msgspec.structs.replace(snapshot.telemetry, warnings=("partial",))

    assert (
        plan(msgspec.structs.replace(snapshot, telemetry=telemetry), policy(), NOW_MS).rows[0].verdict
        == "unknown"
    )


def test_a_whole_board_s_figure_is_none_of_a_slice_or_share_of_it() -> None:
    for resource in ("nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"):
        row = judged(IDLE.but(resource=resource))

        assert (row.verdict, row.action) == ("unknown", None)


def test_a_slice_s_own_figure_counts() -> None:
    sliced = (Board(mean=0.0, device="x/7"),)

    assert judged(IDLE.but(resource="nvidia.com/mig-1g.10gb", seen=(sliced,))).verdict == "idle"


def test_values_that_were_clamped_never_saturate() -> None:
    for flags, verdict in ((0, "saturated"), (CLAMPED, "busy")):
        assert judged(Spec(seen=(boards(1.0, flags=flags),))).verdict == verdict


@pytest.mark.parametrize(("boards_of_node", "verdict"), [(1, "idle"), (2, "unknown")])
def test_a_busy_board_of_an_unknown_node_is_doubted_where_a_board_is_not_seen(
    boards_of_node: int, verdict: str
) -> None:
    snapshot = cluster(IDLE, nodes=(node(gpus=boards_of_node),))
    telemetry = msgspec.structs.replace(
        snapshot.telemetry, unowned=(UnownedDevice("quiet", "", 0), UnownedDevice("y", "", 3_800))
    )

    assert (
        plan(msgspec.structs.replace(snapshot, telemetry=telemetry), policy(), NOW_MS).rows[0].verdict
        == verdict
    )


@pytest.mark.parametrize(
    ("unattributed", "reason"),
    [
        ({"exporter": 4}, "EvidenceUnattributed"),
        ({"ghost": 4}, "EvidenceUnattributed"),
        ({}, "EvidenceAbsent"),
    ],
)
def test_series_that_name_an_exporter_or_nobody_known_leave_pods_without_owner(
    unattributed: dict[str, int], reason: str
) -> None:
    snapshot = cluster(Spec(seen=(None,)))
    telemetry = msgspec.structs.replace(snapshot.telemetry, unattributed=unattributed)

    assert (
        plan(msgspec.structs.replace(snapshot, telemetry=telemetry), policy(), NOW_MS).rows[0].reason
        == reason
    )


def test_ghosts_beside_series_that_have_owners_explain_nothing() -> None:
    snapshot = cluster(Spec(), Spec("other", seen=(None,)))
    telemetry = msgspec.structs.replace(snapshot.telemetry, unattributed={"ghost": 4})
    rows = plan(msgspec.structs.replace(snapshot, telemetry=telemetry), policy(), NOW_MS).rows

    assert next(row.reason for row in rows if row.workload.name == "other") == "EvidenceAbsent"
