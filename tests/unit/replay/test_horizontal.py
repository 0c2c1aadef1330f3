import io
import lzma
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoscaler.replay.horizontal import (
    PEAK_REPLICAS,
    HorizontalPolicy,
    Replayed,
    oracle,
    replay_service,
    run,
    score,
)
from autoscaler.replay.policies_horizontal import POLICIES
from autoscaler.replay.services import Service
from autoscaler.replay.traces import TraceError

STEPS = 400


def noise(seed: int, count: int) -> list[float]:
    dice = random.Random(seed)
    return [dice.gauss(0.0, 1.0) for _ in range(count)]


class Scripted:
    """Wants what a function of the decision's number says, and notes what it was told."""

    def __init__(self, wanted: Callable[[int], int]) -> None:
        self._wanted = wanted
        self.told: list[tuple[int, float, int, int]] = []

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        self.told.append((now_s, load, ready, requested))
        return self._wanted(len(self.told) - 1)


def service(*load: float) -> Service:
    """A load in replicas: its highest value has to be the peak."""
    return Service("s", np.array(load, dtype=np.float64))


def flat(level: float, steps: int = STEPS) -> list[float]:
    return [float(PEAK_REPLICAS), *[level] * (steps - 1)]


def replayed(load: list[float], wanted: Callable[[int], int]) -> Replayed:
    return replay_service(service(*load), lambda: Scripted(wanted))


def test_the_peak_is_what_twenty_replicas_carry() -> None:
    result = replay_service(service(*[50.0] * 30, 100.0), lambda: Scripted(lambda _: 20))

    assert [result.load[0], result.load[-1]] == [10.0, 20.0]


def test_a_policy_is_told_the_load_of_now_and_what_there_is() -> None:
    policy = Scripted(lambda step: 20 if step < 1 else 22)
    replay_service(service(*flat(5.0)), lambda: policy)

    assert policy.told[:3] == [(0, 20.0, 20, 20), (30, 5.0, 20, 20), (60, 5.0, 20, 22)]


def test_a_requested_replica_is_paid_at_once_and_ready_after_two_minutes() -> None:
    result = replayed(flat(5.0), lambda step: 20 if step < 10 else 23)

    assert result.requested[9:15].tolist() == [20, 23, 23, 23, 23, 23]
    assert result.ready[9:15].tolist() == [20, 20, 20, 20, 20, 23]


def test_a_removed_replica_is_gone_at_once() -> None:
    result = replayed(flat(5.0), lambda step: 20 if step < 10 else 6)

    assert (result.requested[10], result.ready[10]) == (6, 6)


def test_those_that_still_start_go_first() -> None:
    result = replayed(flat(5.0), lambda step: [20, 24, 26, 23, 19][min(step, 4)])

    assert result.requested[:6].tolist() == [20, 24, 26, 23, 19, 19]
    assert result.ready[:8].tolist() == [20, 20, 20, 20, 19, 19, 19, 19]


def test_no_policy_goes_under_one_replica() -> None:
    assert replayed(flat(0.5), lambda _: 0).requested.min() == 1


def test_the_oracle_holds_the_highest_need_until_a_new_replica_is_ready() -> None:
    load = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.5, 1.0, 0.0])

    assert oracle(load).tolist() == [1, 3, 3, 3, 3, 3, 1, 1]


def test_the_oracle_fails_nothing_and_scores_one() -> None:
    load = np.abs(np.cumsum(noise(1, STEPS))) + 0.1
    held = oracle(load * PEAK_REPLICAS / load.max()).tolist()
    row = score("oracle", "s", replayed(load.tolist(), lambda step: held[min(step, STEPS - 1)]))

    assert (row.replica_hours_x_oracle, row.unserved_pct) == (1.0, 0.0)


def test_the_first_ten_minutes_are_not_scored() -> None:
    row = score("p", "s", replayed(flat(5.0), lambda step: 5 + step % 7 if step < 19 else 5))

    assert (row.replica_hours_x_oracle, row.unserved_pct, row.acts_per_hour) == (1.0, 0.0, 0.0)


def test_a_change_at_the_first_scored_decision_counts() -> None:
    row = score("p", "s", replayed(flat(5.0), lambda step: 6 if step < 20 else 5))

    assert row.acts_per_hour == pytest.approx(3600 / (30 * (STEPS - 20)), abs=0.01)


def test_unserved_is_the_load_over_what_is_ready() -> None:
    row = score("p", "s", replayed(flat(5.0), lambda _: 4))

    assert (row.replica_hours_x_oracle, row.unserved_pct) == (0.8, 20.0)


@pytest.mark.parametrize("load", [[], [0.0] * STEPS, [1.0] * 20])
def test_a_service_that_cannot_be_scored_is_named(load: list[float]) -> None:
    with pytest.raises(TraceError, match=r"^s: it has no load, or no more than the 600 s"):
        replay_service(service(*load), lambda: Scripted(lambda _: 1))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_what_is_still_to_come_changes_no_decision_made_before_it(name: str) -> None:
    cut = 3_200
    load = 10 + 5 * np.sin(np.arange(6_400) / 300) + noise(7, 6_400)
    load[100] = 40.0  # the peak lies in the past, so that both are scaled alike
    other = np.concatenate((load[:cut], random.Random(7).sample(load[cut:].tolist(), len(load) - cut)))

    told = replay_service(Service("s", load), POLICIES[name])
    retold = replay_service(Service("s", other), POLICIES[name])

    assert told.requested[:cut].tolist() == retold.requested[:cut].tolist()


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_same_load_gives_the_same_decisions(name: str) -> None:
    load = 10 + 5 * np.sin(np.arange(1_000) / 100)

    first, second = (replay_service(Service("s", load), POLICIES[name]) for _ in range(2))

    assert first.requested.tolist() == second.requested.tolist()


class Leaking:
    """A policy that knows the future, as a leak would make it."""

    def __init__(self, future: list[float]) -> None:
        self._future = future
        self._step = 0

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        del now_s, load, ready, requested
        self._step += 1
        return max(1, round(self._future[min(self._step + 50, len(self._future) - 1)]))


def test_the_test_for_leaks_finds_one() -> None:
    load = [float(value) for value in range(1, 201)]
    other = load[:100] + load[100:][::-1]

    def leaking(future: list[float]) -> list[int]:
        policy: HorizontalPolicy = Leaking(future)
        return replay_service(service(*future), lambda: policy).requested[:100].tolist()

    assert leaking(load) != leaking(other)


def test_ours_is_cheaper_than_the_tightest_usual_target_and_serves_more() -> None:
    day = 10 + 6 * np.sin(np.arange(6 * 2_880) * 2 * np.pi / 2_880)
    swing = np.interp(np.arange(len(day)), np.arange(0, len(day), 20), noise(3, 864)) / 2
    load = np.maximum(0.5, day + swing)
    rows = {
        name: score(name, "s", replay_service(Service("s", load), POLICIES[name]))
        for name in ("autoscaler", "hpa-80")
    }

    assert rows["autoscaler"].replica_hours_x_oracle <= 1.12 < rows["hpa-80"].replica_hours_x_oracle
    assert rows["autoscaler"].unserved_pct <= 0.01
    assert rows["autoscaler"].acts_per_hour <= 4


def packed(root: Path, clients: dict[str, str]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in clients.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    (root / "servegen").mkdir()
    (root / "servegen" / "servegen_client_rate_traces.tar.xz").write_bytes(lzma.compress(buffer.getvalue()))


def test_rows_come_by_service_and_policy_with_progress(tmp_path: Path) -> None:
    rates = "".join(f"{600 * window},{1 + window % 3},0,,0,0\n" for window in range(10))
    packed(tmp_path, {"./a/chunk-1-trace.csv": rates, "./b/chunk-1-trace.csv": rates})
    heard: list[tuple[str, int, int]] = []
    chosen = {name: POLICIES[name] for name in ("do-nothing", "hpa-70")}

    rows = list(run(tmp_path, chosen, lambda *told: heard.append(told)))

    assert [(row.service, row.policy) for row in rows] == [
        ("servegen/a", "do-nothing"),
        ("servegen/a", "hpa-70"),
        ("servegen/b", "do-nothing"),
        ("servegen/b", "hpa-70"),
    ]
    assert heard == [
        ("servegen/a", 181, 362),
        ("servegen/a", 362, 362),
        ("servegen/b", 181, 362),
        ("servegen/b", 362, 362),
    ]
