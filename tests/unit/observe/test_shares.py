"""Boards that several pods use: what is a pod's own, what is the board's, and when a zero proves anything."""

import msgspec
import pytest
from unit.observe.observed import (
    NOW_MS,
    Scrape,
    Seen,
    board,
    node,
    pod,
    reading,
    snapshot,
)

from autoscaler.model.evidence import CLAMPED, CONTRADICTORY, CROWDED, FROZEN, SHARED, UNPROVEN, HolderTable

pytestmark = pytest.mark.unit

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def share(name: str, number: int, value: str) -> Seen:
    return Seen(board("x", name, vgpu=str(number), pod_uid=f"uid-ml-{name}"), value)


def time_sliced(*values: str, memory: tuple[str, ...] = (), whole: str | None = "64") -> HolderTable:
    """One board in shares, each of a pod of its own, beside the board's own row."""
    names = "abcd"[: len(values)]
    rows = [share(name, n, value) for n, (name, value) in enumerate(zip(names, values, strict=True))]
    used = [share(name, n, value) for n, (name, value) in enumerate(zip(names, memory, strict=False))]
    own = [Seen(board("x"), whole)] if whole is not None else []
    copies = [Seen(seen.labels, "0.65") for seen in rows]
    scrape = Scrape("dcgm", {ENGINE: copies, UTIL: [*own, *rows]}, used=used, power=[Seen(board("x"), "310")])
    return snapshot(*(pod(name) for name in names), node("node-1"), series=reading(scrape)).holders


def test_on_a_share_only_the_signal_that_is_the_pod_s_own_is_read() -> None:
    found = time_sliced("51", "13")

    assert found.mean.tolist() == [5100, 1300]
    assert found.shares.tolist() == [2, 2]
    assert found.device == ("x#0", "x#1")
    assert found.flags.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("memory", "whole", "flag"),
    [
        (("7010", "784"), "64", UNPROVEN),
        (("7010", "0"), "64", 0),
        (("7010", "784"), "0", 0),
        (("7010", "784"), None, UNPROVEN),
        ((), "64", UNPROVEN),
    ],
)
def test_a_share_s_zero_needs_an_empty_memory_or_a_quiet_board(
    memory: tuple[str, ...], whole: str | None, flag: int
) -> None:
    assert time_sliced("51", "0", memory=memory, whole=whole).flags.tolist() == [0, flag]


def test_the_board_s_own_row_is_not_without_owner_beside_its_shares() -> None:
    rows = [Seen(board("x"), "64"), share("a", 0, "64")]
    seen = snapshot(pod("a"), node("node-1"), series=reading(Scrape("dcgm", {UTIL: rows})))

    assert seen.telemetry.unowned == ()


def test_a_slice_s_board_is_not_without_owner_and_its_own_activity_is_not_read() -> None:
    rows = [
        Seen(board("x"), "0.9"),
        Seen(board("x", "a", GPU_I_ID="7"), "0.2"),
        Seen(board("x", GPU_I_ID="8"), "0.4"),
    ]
    seen = snapshot(pod("a"), node("node-1"), series=reading(Scrape("dcgm", {ENGINE: rows})))

    assert [(device.device, device.peak) for device in seen.telemetry.unowned] == [("x/8", 4000)]


HAMI = "hami_container_device_utilization_ratio"


def hami(values: dict[str, str], ages: dict[str, str] | None = None, *, whole: float = 0.57) -> HolderTable:
    """Pods with the same virtual device number on one board."""

    def row(name: str, value: str) -> Seen:
        owner = {"pod": name, "namespace": "ml", "container": "main"}
        return Seen({"device_uuid": "GPU-x", "vdevice_index": "0", "node": "node-1", **owner}, value)

    scrape = Scrape(
        "hami",
        {HAMI: [row(name, value) for name, value in values.items()]},
        last_active=[row(name, value) for name, value in (ages or {}).items()],
        boards={"x": whole},
    )
    return snapshot(*(pod(name) for name in values), node("node-1"), series=reading(scrape)).holders


def test_pods_with_the_same_share_number_are_shares_of_their_own() -> None:
    found = hami({"a": "48", "b": "0"}, {"a": "1", "b": "5410"})

    assert found.shares.tolist() == [2, 2]
    assert found.flags.tolist() == [0, 0]


def test_a_kernel_of_late_contradicts_a_zero() -> None:
    assert hami({"a": "48", "b": "0"}, {"a": "1", "b": "2"}).flags.tolist() == [
        0,
        CONTRADICTORY | UNPROVEN,
    ]


def test_the_sole_user_of_a_busy_board_is_not_at_rest() -> None:
    assert hami({"a": "0"}).flags.tolist() == [CONTRADICTORY | UNPROVEN]
    assert hami({"a": "0"}, whole=0.0).flags.tolist() == [0]


def test_a_value_over_full_counts_as_full_and_is_flagged_where_the_profile_says_so() -> None:
    found = hami({"a": "340", "b": "12"})

    assert found.mean.tolist() == [10_000, 1_200]
    assert found.flags.tolist() == [CLAMPED, 0]


def test_a_blank_marker_is_never_clamped() -> None:
    assert hami({"a": "9223372036854775794"}).mean.tolist() == [65_535]


@pytest.mark.parametrize(("moved", "flag"), [("0", FROZEN), ("1500", 0)])
def test_an_energy_counter_that_stands_still_is_frozen(moved: str, flag: int) -> None:
    labels = board("x", "a")
    scrape = Scrape("dcgm", {ENGINE: [Seen(labels, "0.5")]}, energy=[Seen(labels, moved)])

    assert snapshot(pod("a"), series=reading(scrape)).holders.flags.tolist() == [flag]


def test_a_board_that_is_frozen_freezes_its_slices() -> None:
    scrape = Scrape(
        "dcgm", {ENGINE: [Seen(board("x", "a", GPU_I_ID="7"), "0")]}, energy=[Seen(board("x"), "0")]
    )

    assert snapshot(pod("a"), series=reading(scrape)).holders.flags.tolist() == [FROZEN]


@pytest.mark.parametrize(("traffic", "flag"), [("0.3", CONTRADICTORY), ("0.01", 0)])
def test_memory_traffic_contradicts_a_zero(traffic: str, flag: int) -> None:
    labels = board("x", "a")
    moved = {"DCGM_FI_PROF_DRAM_ACTIVE": [Seen(labels, traffic)]}
    scrape = Scrape("dcgm", {ENGINE: [Seen(labels, "0")]}, traffic=moved)

    assert snapshot(pod("a"), series=reading(scrape)).holders.flags.tolist() == [flag]


@pytest.mark.parametrize(("neighbour", "holders"), [("other", 0), ("main", 1)])
def test_a_series_that_names_a_neighbour_s_container_is_nobody_s(neighbour: str, holders: int) -> None:
    scrape = Scrape("dcgm", {ENGINE: [Seen(board("x", "a", container="other"), "0")]})
    second = pod(
        "b", spec={"containers": [{"name": neighbour, "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    )
    seen = snapshot(pod("a"), second, node("node-1"), series=reading(scrape))

    assert (len(seen.holders), seen.telemetry.ghosts) == (holders, 1 - holders)


def test_a_series_from_another_known_node_than_the_pod_s_is_nobody_s() -> None:
    scrape = Scrape("dcgm", {ENGINE: [Seen({**board("x", "a"), "hostname": "node-2"}, "0")]})

    assert len(snapshot(pod("a"), node("node-1"), series=reading(scrape)).holders) == 1
    assert len(snapshot(pod("a"), node("node-1"), node("node-2"), series=reading(scrape)).holders) == 0


@pytest.mark.parametrize(
    ("pods", "labels", "flags"),
    [
        (2, {}, [CROWDED]),
        (1, {}, [0]),
        (2, {"nvidia.com/gpu.replicas": "1"}, [0]),
    ],
)
def test_more_boards_held_than_seen_make_every_figure_of_the_node_doubtful(
    pods: int, labels: dict[str, str], flags: list[int]
) -> None:
    scrape = Scrape("dcgm", {ENGINE: [Seen(board("x", "a"), "0.5")]})
    found = snapshot(*(pod(name) for name in "abc"[:pods]), node("node-1", **labels), series=reading(scrape))

    assert found.holders.flags.tolist() == flags


def test_a_board_on_a_node_that_is_not_known_may_be_the_one_that_is_missing() -> None:
    rows = [Seen(board("x", "a"), "0.5"), Seen({"UUID": "GPU-y"}, "0.5")]
    scrape = Scrape("dcgm", {ENGINE: rows})

    assert snapshot(pod("a"), pod("b"), node("node-1"), series=reading(scrape)).holders.flags.tolist() == [0]


def test_a_pod_that_has_just_started_crowds_nobody() -> None:
    scrape = Scrape("dcgm", {ENGINE: [Seen(board("x", "a"), "0.5")]})
    young = pod("b", start_ms=NOW_MS - 60_000)

    assert snapshot(pod("a"), young, node("node-1"), series=reading(scrape)).holders.flags.tolist() == [0]


def smi(uuid: str, value: str) -> Seen:
    return Seen({"uuid": uuid, "instance": "node-1:9835"}, value)


def test_an_exporter_of_boards_alone_takes_the_pod_that_another_names() -> None:
    owned = Scrape("dcgm", {ENGINE: [Seen(board("x", "a"), "0.5")]})
    boards = Scrape(
        "nvidia-gpu-exporter", {"nvidia_smi_utilization_gpu_ratio": [smi("x", "0.4"), smi("y", "0.9")]}
    )
    seen = snapshot(pod("a"), node("node-1"), series=reading(owned, boards))

    assert seen.holders.mean.tolist() == [5000, 4000]
    assert [device.device for device in seen.telemetry.unowned] == ["y"]


def test_a_board_of_two_pods_names_no_owner_for_others() -> None:
    rows = [Seen(board("x", name), "0.5") for name in "ab"]
    boards = Scrape("nvidia-gpu-exporter", {"nvidia_smi_utilization_gpu_ratio": [smi("x", "0.4")]})
    whole = node("node-1", **{"nvidia.com/gpu.replicas": "1"})
    seen = snapshot(pod("a"), pod("b"), whole, series=reading(Scrape("dcgm", {ENGINE: rows}), boards))

    assert seen.holders.flags.tolist() == [SHARED, SHARED]


def test_of_alternative_device_labels_the_first_that_is_whole_names_the_device() -> None:
    owner = {"pod": "a", "namespace": "ml", "container": "main"}
    amd = {"hostname": "node-1", "serial_number": "7", "gpu_id": "3"}
    rows = [Seen({**owner, **amd}, "50"), Seen({**owner, **amd, "gpu_uuid": "u"}, "50")]
    table = snapshot(pod("a"), series=reading(Scrape("amd", {"gpu_gfx_activity": rows}))).holders

    assert sorted(table.device) == ["node-1+7+3", "u"]


def test_a_renamed_namespace_alone_is_found() -> None:
    labels = {"vdie_id": "v", "pod_name": "a", "container_name": "main", "namespace": "monitoring"}
    rows = [Seen({**labels, "exported_namespace": "ml"}, "88")]
    table = snapshot(pod("a"), series=reading(Scrape("ascend", {"container_npu_utilization": rows}))).holders

    assert table.mean.tolist() == [8800]


def test_history_of_an_older_table_has_whole_boards() -> None:
    table = HolderTable(
        device=("x",),
        container=("main",),
        **{
            name: [0]
            for name in msgspec.structs.asdict(HolderTable())
            if name not in {"device", "container", "shares"}
        },
    )

    assert table.shares.tolist() == [1]


def test_a_pod_that_holds_boards_names_no_owner_for_others() -> None:
    forged = {**board("x", "a"), "exported_pod": "b", "exported_namespace": "ml"}
    scrape = Scrape("dcgm", {ENGINE: [Seen(forged, "0"), Seen(board("y", "b"), "0.9")]})
    seen = snapshot(pod("a"), pod("b"), node("node-1"), series=reading(scrape))

    assert seen.holders.device == ("y",)
