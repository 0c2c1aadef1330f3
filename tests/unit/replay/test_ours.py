import random
from collections.abc import Mapping, Sequence

import pytest

from autoscaler.decide.sizing.rules import SizingRules
from autoscaler.model.backtest import RELEASED, WHOLE
from autoscaler.model.reasons import Reason
from autoscaler.replay.ours import POLICIES, Sizing

STEP_S = 60.0
ASK_STEPS = 5
HOURS = 8
STEPS = HOURS * 60

Decisions = list[tuple[int, str, int]]


def played(
    policy: Sizing, loads: Mapping[str, Sequence[float | None]], *, start_s: float = 1_700_000_000.0
) -> Decisions:
    """Every answer as (step, pod, allocation); a released pod is woken by the next demand, as the replay does it."""
    policy.reset()
    held = dict.fromkeys(loads, WHOLE)
    said: Decisions = []
    for pod in loads:
        policy.pod_started(pod, start_s)
    for step in range(max(map(len, loads.values()))):
        now_s = start_s + step * STEP_S
        for pod, load in loads.items():
            seen = load[step]
            if held[pod] == RELEASED and seen:
                held[pod] = WHOLE
                policy.allocated(pod, now_s, WHOLE)
            if held[pod] != RELEASED and seen is not None:
                policy.observe(pod, now_s, seen, 20.0)
        for pod in loads if step % ASK_STEPS == 0 else ():
            answer = policy.ask(pod, now_s)
            said.append((step, pod, answer))
            if answer != held[pod]:
                held[pod] = answer
                policy.allocated(pod, now_s + STEP_S, answer)
    return said


def noisy(seed: int, share: float) -> list[float | None]:
    dice = random.Random(seed)
    return [dice.choice((0.2, 0.4)) if dice.random() < share else 0.0 for _ in range(STEPS)]


def test_both_risks_are_there_by_name() -> None:
    assert list(POLICIES) == ["autoscaler-careful", "autoscaler-saving"]


def test_a_pod_that_falls_asleep_is_released_and_comes_back_with_demand() -> None:
    load = [0.3] * 60 + [0.0] * 300 + [0.3] * 120
    said = played(Sizing(SizingRules(), 48.0), {"a": load})
    released = [step for step, _, answer in said if answer == RELEASED]

    assert released[0] >= 60 + 30
    assert released[-1] < 60 + 300
    assert [answer for step, _, answer in said if step >= 360] == [WHOLE] * 24


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_what_comes_later_changes_no_decision_that_came_before(name: str) -> None:
    loads = {f"pod-{seed}": noisy(seed, share) for seed, share in enumerate((0.0, 0.002, 0.01, 0.02, 0.3))}
    cut = 5 * 60
    dice = random.Random(7)
    shuffled = {pod: [*load[:cut], *dice.sample(load[cut:], STEPS - cut)] for pod, load in loads.items()}
    policy = POLICIES[name](48.0)
    assert isinstance(policy, Sizing)
    before, after = played(policy, loads), played(policy, shuffled)

    def until_cut(said: Decisions) -> Decisions:
        return [decision for decision in said if decision[0] < cut]

    assert until_cut(before) == until_cut(after)
    assert RELEASED in {answer for _, _, answer in before}


def test_samples_that_stay_away_keep_the_board() -> None:
    load = [0.3] * 60 + [0.0] * 20 + [None] * 400
    said = played(Sizing(SizingRules(careful_chance=0.0), 48.0), {"a": load})

    assert {answer for _, _, answer in said} == {WHOLE}


def test_peers_that_wake_keep_a_sleeper_from_being_released() -> None:
    sleeper = [0.3] * 60 + [0.0] * 60
    restless = {f"peer-{n}": [0.3 if (step + n) % 9 == 0 else 0.0 for step in range(120)] for n in range(12)}

    def releases(loads: Mapping[str, Sequence[float | None]]) -> int:
        said = played(Sizing(SizingRules(), 48.0), loads)
        return sum(pod == "sleeper" and answer == RELEASED for _, pod, answer in said)

    assert releases({"sleeper": sleeper, **restless}) == 0
    assert releases({"sleeper": sleeper, **{f"peer-{n}": sleeper for n in range(12)}}) > 0


def test_a_pod_that_ended_is_forgotten() -> None:
    policy = Sizing(SizingRules(), 48.0)
    policy.pod_started("a", 0.0)
    policy.observe("a", 0.0, None, 20.0)
    policy.pod_ended("a", 60.0)
    policy.pod_started("a", 120.0)

    assert policy.choice("a", 120.0).reason is Reason.EVIDENCE_STALE
