from build import DAY_MS, GPU, HOUR_MS, NOW_MS, Spec, cluster, node, policy
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.tally import Effect, Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import PastAct, WorkloadRef

REF = WorkloadRef("apps", "Deployment", "team", "web")


def tally(*acts: PastAct) -> Tally:
    return Tally.of(World(cluster(Spec(), nodes=(node(gpus=8),), acts=acts), policy(), NOW_MS))


def test_acts_count_within_their_hour_and_day() -> None:
    found = tally(
        PastAct(REF, NOW_MS, 1000),
        PastAct(REF, NOW_MS - HOUR_MS + 1, 250),
        PastAct(REF, NOW_MS - HOUR_MS, 4000, verified=False),
        PastAct(REF, NOW_MS - DAY_MS, 9000),
    )

    assert (
        found.boards_hour,
        found.boards_day,
        found.namespace_boards,
        found.in_flight,
    ) == (2, 6, {"team": 2}, 1)


def test_effects_add_up() -> None:
    effect = Effect(
        namespace="team",
        surge_nodes=("node-1", "node-1"),
        surge_demand={GPU: 1},
        quota={"requests.nvidia.com/gpu": 2},
        disruptions=(("budget", 1),),
        boards=3,
    )
    found = tally().after(effect).after(effect)

    assert (found.free["node-1"][GPU], found.free["node-1"]["pods"]) == (3, 105)
    assert found.quota == {"team": {"requests.nvidia.com/gpu": 4}}
    assert found.disruptions == {("team", "budget"): 2}
    assert (
        found.boards_hour,
        found.boards_day,
        found.namespace_boards,
        found.in_flight,
    ) == (6, 6, {"team": 6}, 2)


def test_an_effect_leaves_the_former_tally_as_it_was() -> None:
    before = tally()
    before.after(Effect("team", ("node-1",), {GPU: 1}, {"pods": 1}, (("budget", 1),), 1))

    assert tally() == before


@given(st.lists(st.integers(0, 9), max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_effects_does_not_matter(boards: list[int], random: object) -> None:
    effects = [Effect(f"ns-{n % 2}", quota={"pods": n}, boards=n) for n in boards]
    one = other = tally()
    for effect in effects:
        one = one.after(effect)
    for effect in random.sample(effects, len(effects)):  # type: ignore[attr-defined]
        other = other.after(effect)

    assert one == other
