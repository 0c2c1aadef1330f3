import pytest

from devcluster.demo.phases import Findings, Phase
from devcluster.demo.story import SCENES, Scene, Story, after

pytestmark = pytest.mark.unit

DONE = Findings()
WAITS = Findings(missing=["a seat"])


def story(*, in_no_hurry: bool = False) -> Story:
    scene = Scene(phase=Phase.NIGHT, tells="", from_hour=22, hours=4, shown_s=40, deadline_s=90)
    told = Story(in_no_hurry=in_no_hurry)
    told.begin(scene, 100)
    return told


def test_a_scene_ends_as_soon_as_all_its_claims_hold() -> None:
    told = story()

    assert [told.hear(WAITS, 101), told.hear(DONE, 102)] == ["wait", "next"]


def test_played_live_a_scene_is_shown_for_its_time() -> None:
    told = story(in_no_hurry=True)

    assert [told.hear(DONE, 139), told.hear(DONE, 140)] == ["wait", "next"]


def test_a_claim_that_does_not_hold_in_time_is_a_fault() -> None:
    told = story()

    assert [told.hear(WAITS, 190), told.hear(WAITS, 190.1)] == ["wait", "failed"]
    assert told.faults() == ["night: not within 90 s: a seat"]


def test_a_broken_claim_ends_the_story_at_once() -> None:
    told = story()

    assert told.hear(Findings(missing=["a seat"], broken=["preempted"]), 101) == "failed"
    assert told.faults() == ["night: preempted"]


def test_a_broken_claim_counts_even_where_all_else_holds() -> None:
    assert story().hear(Findings(broken=["preempted"]), 101) == "failed"


@pytest.mark.parametrize(
    ("now_s", "clock"), [(99, "22:00"), (100, "22:00"), (120, "00:00"), (140, "02:00"), (500, "02:00")]
)
def test_the_clock_runs_through_the_scene_and_stands_still_at_its_end(now_s: float, clock: str) -> None:
    assert story().clock(now_s) == clock


def test_one_day_is_every_phase_once_in_its_order() -> None:
    scenes = [SCENES[0]]
    while (scene := after(scenes[-1], again=False)) is not None:
        scenes.append(scene)

    assert [scene.phase for scene in scenes] == list(Phase)


def test_the_next_day_begins_where_the_acts_were_made_already() -> None:
    following = after(SCENES[-1], again=True)

    assert following is not None
    assert following.phase is Phase.DAY
