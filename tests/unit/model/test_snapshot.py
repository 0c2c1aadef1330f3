import contextlib
import gzip

import msgspec
import pytest
from build import NOW_MS, Spec, boards, cluster
from hypothesis import given
from hypothesis import strategies as st
from worlds import bounded_worlds, with_columns, worlds

from autoscaler.decide import plan
from autoscaler.model import snapshot as module
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import (
    Snapshot,
    SnapshotError,
    _column_to_list,
    _list_to_column,
    decode_snapshot,
    encode_snapshot,
)

GOOD = cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),)))
PACKED = encode_snapshot(GOOD)
PLAIN = gzip.decompress(PACKED)


def changed(**tables: object) -> bytes:
    document = msgspec.json.decode(PLAIN)
    for name, value in tables.items():
        *path, last = name.split("__")
        place = document
        for step in path:
            place = place[int(step) if step.isdecimal() else step]
        place[last] = value
    return msgspec.json.encode(document)


@given(st.one_of(worlds(), bounded_worlds()))
def test_a_snapshot_reads_back_equal_and_has_one_form(snapshot: Snapshot) -> None:
    packed = encode_snapshot(snapshot)

    assert snapshot == decode_snapshot(packed)
    assert packed == encode_snapshot(decode_snapshot(packed))


def test_plain_json_is_read_too() -> None:
    assert decode_snapshot(PLAIN) == GOOD


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not a snapshot"),
        (b"null", "not a snapshot"),
        (b"{}", "not a snapshot"),
        (b"\x1f\x8b", "not a snapshot"),
        (b"\x1f\x8b" + b"\xff" * 40, "not a snapshot"),
        (PACKED[:-9], "not a snapshot"),
        (PACKED[:12] + b"\xff" * 12, "not a snapshot"),
        (PACKED[:40] + bytes([PACKED[40] ^ 255]) + PACKED[41:], "not a snapshot"),
        (PLAIN[:-1], "not a snapshot"),
        (b'{"format":1,"x":' + b"[" * 100_000, "not a snapshot"),
        (b'{"format":1}', "taken_ms"),
        (b'{"format":1,"taken_ms":"now"}', "taken_ms"),
        (b'{"format":99}', "format 99 is not readable, expected 1"),
        (changed(telemetry__sources__0__interval_ms=10**400), "interval_ms"),
        (changed(workloads__0__replicas=2**64), "replicas"),
        (changed(nodes__0__allocatable={"gpu": 10**30}), "allocatable"),
        (changed(pods__0__shape=7), "pod team/web-0 refers to a missing shape or workload"),
        (changed(pods__0__workload=-1), "pod team/web-0 refers to a missing shape or workload"),
        (changed(workloads__0__template=7), "workload team/web refers to a missing shape"),
        (changed(workloads__0__template=-2), "workload team/web refers to a missing shape"),
        (changed(holders__pod=[0, 1]), "holders refer to missing pods"),
        (changed(holders__pod=[-1, 0]), "holders refer to missing pods"),
        (changed(holders__source=[0, 1]), "holders refer to missing sources"),
        (changed(holders__source=[-1, 0]), "holders refer to missing sources"),
        (changed(taken_ms=-(2**63)), "taken_ms"),
        (changed(taken_ms=10**30), "taken_ms"),
        (changed(taken_ms=253_402_300_800_000), "taken_ms"),
        (changed(pods__0__started_ms=2**62), "started_ms"),
        (changed(pods__0__created_ms=-2), "created_ms"),
        (changed(telemetry__store_ms=2**62), "store_ms"),
        (changed(telemetry__read_ms=2**62), "read_ms"),
        (changed(telemetry__skew_ms=-(2**62)), "skew_ms"),
        (changed(holders__last_ms=[2**62, 0]), "holders' last_ms is no time"),
        (changed(holders__last_ms=[-2, 0]), "holders' last_ms is no time"),
        (changed(holders__history_first_ms=[0, 2**62]), "holders' history_first_ms is no time"),
        (changed(holders__mean=[0.5, 0.5]), "column mean"),
        (changed(holders__mean=[65_536, 0]), "column mean"),
        (changed(holders__mean=[None, 0]), "column mean"),
        (changed(holders__mean=["1", "2"]), "column mean"),
        (changed(holders__mean=[[1], [1, 2]]), "not a snapshot"),
        (changed(holders__mean=[10**30, 0]), "column mean"),
        (changed(holders__mean=[0]), "column mean"),
        (changed(holders__device=["one"]), "column"),
    ],
)
def test_a_broken_file_is_refused_in_words(data: bytes, told: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        decode_snapshot(data)

    assert told in str(caught.value)


@given(st.binary(max_size=200), st.integers(0, len(PACKED)), st.integers(0, 20))
def test_any_damage_is_a_snapshot_error_or_a_snapshot_that_can_be_judged(
    junk: bytes, at: int, lost: int
) -> None:
    for data in (junk, PACKED[:at] + junk + PACKED[at + lost :], PLAIN[:at] + junk + PLAIN[at + lost :]):
        with contextlib.suppress(SnapshotError):
            assert plan(decode_snapshot(data), Policy(), NOW_MS).taken_ms is not None


def test_a_file_that_unpacks_to_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(SnapshotError, match="over 1000 bytes"):
        decode_snapshot(gzip.compress(b" " * 1001))


def test_a_file_in_two_gzip_members_is_read_whole() -> None:
    half = len(PLAIN) // 2

    assert decode_snapshot(gzip.compress(PLAIN[:half]) + gzip.compress(PLAIN[half:])) == GOOD


def test_only_columns_have_a_form_of_their_own() -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        _column_to_list(1j)
    with pytest.raises(NotImplementedError, match="complex"):
        _list_to_column(complex, 1)


def test_snapshots_differ_where_a_column_differs() -> None:
    assert with_columns(GOOD, mean=GOOD.holders.mean + 1) != GOOD
    assert GOOD.taken_ms == NOW_MS


def test_a_workload_is_named_by_namespace_and_name() -> None:
    assert str(WorkloadRef("apps", "Deployment", "team", "web")) == "team/web"
