from itertools import groupby

from autoscaler.replay.gaps import Holes
from autoscaler.replay.report import run_vertical
from tests.unit.replay.recorded import STEP_S, Recorded
from tests.unit.replay.scripted import Scripted


def hidden(pod: str, *, seed: int = 1, steps: int = 20_000) -> list[bool]:
    holes = Holes(step_s=STEP_S, seed=seed)
    return [holes.hides(pod, index) for index in range(steps)]


def test_about_a_tenth_is_hidden() -> None:
    shares = [sum(hidden(f"pod-{number}")) / 20_000 for number in range(20)]

    assert 0.09 < sum(shares) / len(shares) < 0.11


def test_holes_are_twenty_minutes_or_several_of_them_on_end() -> None:
    lengths = [len(list(group)) for is_hidden, group in groupby(hidden("a")) if is_hidden]

    assert {length % 22 for length in lengths[1:-1]} == {0}
    assert 22 * STEP_S >= 1200 > 21 * STEP_S


def test_the_seed_and_the_pod_decide_and_nothing_else() -> None:
    assert hidden("a") == hidden("a")
    assert hidden("a") != hidden("b")
    assert hidden("a") != hidden("a", seed=2)


def test_a_hidden_sample_reaches_no_policy_and_still_counts_as_load() -> None:
    load = {"a": [0.5] * 400}
    open_eyes, with_holes = Scripted({}), Scripted({})
    run_vertical(Recorded(load), {"x": lambda _: open_eyes}, board_gib=48.0)
    report = run_vertical(Recorded(load), {"x": lambda _: with_holes}, board_gib=48.0, gaps=True)
    missing = {index for index, *_ in open_eyes.seen} - {index for index, *_ in with_holes.seen}

    assert len(missing) >= 22
    assert report.rows[0].gaps
    assert report.pod_hours == round(400 * STEP_S / 3600, 2)
