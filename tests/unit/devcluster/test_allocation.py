from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from devcluster.exporter.allocation import BoardAllocation, BoundPod, Claim, HeldBoard, NodeBoards

pytestmark = pytest.mark.unit

GPU = "gpuconfig.com/gpu"


def node(name: str = "n", **counts: int) -> NodeBoards:
    resources = counts or {GPU: 4}
    return NodeBoards(name=name, counts=tuple(resources.items()), model="A100", memory_mib=81920)


def pod(
    uid: str, *amounts: int, on: str = "n", resource: str = GPU, created_at: str = "2026-01-01T00:00:00Z"
) -> BoundPod:
    claims = tuple(
        Claim(container=f"c{number}", resource=resource, count=amount)
        for number, amount in enumerate(amounts)
    )
    return BoundPod(
        uid=uid,
        namespace="ns",
        name=f"pod-{uid}",
        node=on,
        claims=claims,
        workloads=(),
        is_running=True,
        created_at=created_at,
    )


def indices(allocation: BoardAllocation, uid: str) -> list[int]:
    return [board.index for board in allocation.boards_of(uid)]


def test_a_bound_pod_gets_the_lowest_free_boards() -> None:
    allocation = BoardAllocation()
    allocation.node_seen(node())
    allocation.pod_seen(pod("a", 1))
    allocation.pod_seen(pod("b", 2))

    assert indices(allocation, "a") == [0]
    assert indices(allocation, "b") == [1, 2]


def test_a_freed_board_is_the_next_to_be_given() -> None:
    allocation = BoardAllocation()
    allocation.node_seen(node())
    for uid in "abc":
        allocation.pod_seen(pod(uid, 1))
    allocation.pod_gone("a")
    allocation.pod_seen(pod("d", 2))

    assert indices(allocation, "d") == [0, 3]
    assert indices(allocation, "c") == [2]


def test_each_container_holds_its_own_boards() -> None:
    allocation = BoardAllocation()
    allocation.node_seen(node())
    allocation.pod_seen(pod("a", 1, 2))

    assert [(board.index, board.container) for board in allocation.boards_of("a")] == [
        (0, "c0"),
        (1, "c1"),
        (2, "c1"),
    ]


def test_resources_of_one_node_have_boards_of_their_own() -> None:
    allocation = BoardAllocation()
    allocation.node_seen(node("n", **{GPU: 2, "nvidia.com/gpu": 2}))
    allocation.pod_seen(pod("a", 1, resource="nvidia.com/gpu"))

    assert indices(allocation, "a") == [2]


def test_a_pod_without_enough_free_boards_waits_and_is_seated_when_they_are_free() -> None:
    allocation = BoardAllocation()
    allocation.node_seen(node())
    allocation.pod_seen(pod("a", 3))
    allocation.pod_seen(pod("b", 2))
    assert indices(allocation, "b") == []

    allocation.pod_gone("a")

    assert indices(allocation, "b") == [0, 1]


def test_a_pod_that_is_seen_before_its_node_is_seated_with_it() -> None:
    allocation = BoardAllocation()
    allocation.pod_seen(pod("a", 1))
    allocation.node_seen(node())

    assert indices(allocation, "a") == [0]


def test_boards_survive_a_restart_and_the_dead_do_not() -> None:
    first = BoardAllocation()
    first.node_seen(node())
    for uid in "abc":
        first.pod_seen(pod(uid, 1))

    second = BoardAllocation(first.held)
    second.node_seen(node())
    second.relisted([pod("c", 1), pod("d", 1, created_at="2026-01-02T00:00:00Z"), pod("b", 1)])

    assert indices(second, "b") == [1]
    assert indices(second, "c") == [2]
    assert indices(second, "d") == [0]
    assert set(second.held) == {"b", "c", "d"}


@given(st.permutations("abcd"))
def test_new_pods_of_a_list_are_seated_by_age_whatever_its_order(order: list[str]) -> None:
    allocation = BoardAllocation()
    allocation.node_seen(node())
    allocation.relisted([pod(uid, 1, created_at=f"2026-01-0{'abcd'.index(uid) + 1}") for uid in order])

    assert [indices(allocation, uid) for uid in "abcd"] == [[0], [1], [2], [3]]


class BoardsUnderChurn(RuleBasedStateMachine):
    """Any order of arrivals, ends, lists, restarts and node changes."""

    def __init__(self) -> None:
        super().__init__()
        self.allocation = BoardAllocation()
        self.live: dict[str, BoundPod] = {}
        self.seats: dict[str, tuple[str, tuple[HeldBoard, ...]]] = {}
        self.next_uid = 0

    @rule(name=st.sampled_from(["n0", "n1"]), boards=st.integers(4, 6))
    def node_appears(self, name: str, boards: int) -> None:
        if name not in self.allocation.nodes:
            self.allocation.node_seen(node(name, **{GPU: boards}))

    @rule(name=st.sampled_from(["n0", "n1"]))
    def node_disappears(self, name: str) -> None:
        self.allocation.node_gone(name)

    @rule(on=st.sampled_from(["n0", "n1"]), amounts=st.lists(st.integers(1, 3), min_size=1, max_size=2))
    def pod_arrives(self, on: str, amounts: list[int]) -> None:
        uid = f"u{self.next_uid:04}"
        self.next_uid += 1
        self.live[uid] = pod(uid, *amounts, on=on, created_at=uid)
        self.allocation.pod_seen(self.live[uid])

    @rule(data=st.data())
    def pod_ends(self, data: st.DataObject) -> None:
        if self.live:
            uid = data.draw(st.sampled_from(sorted(self.live)))
            del self.live[uid]
            self.seats.pop(uid, None)
            self.allocation.pod_gone(uid)

    @rule(data=st.data())
    def pods_are_listed_again(self, data: st.DataObject) -> None:
        lost = data.draw(st.sets(st.sampled_from(sorted(self.live)))) if self.live else set()
        for uid in lost:
            del self.live[uid]
            self.seats.pop(uid, None)
        self.allocation.relisted(data.draw(st.permutations(list(self.live.values()))))

    @rule()
    def exporter_restarts(self) -> None:
        nodes = list(self.allocation.nodes.values())
        self.allocation = BoardAllocation(self.allocation.held)
        for one in nodes:
            self.allocation.node_seen(one)
        self.allocation.relisted(self.live.values())

    @invariant()
    def no_board_is_held_by_two(self) -> None:
        held = Counter((on, board.index) for on, boards in self.allocation.held.values() for board in boards)
        assert not [board for board, count in held.items() if count > 1]

    @invariant()
    def boards_are_kept_while_the_pod_lives(self) -> None:
        for uid, seat in self.seats.items():
            assert self.allocation.held[uid] == seat
        self.seats = {uid: self.allocation.held[uid] for uid in self.live if uid in self.allocation.held}

    @invariant()
    def only_the_living_hold_boards(self) -> None:
        assert set(self.allocation.held) <= set(self.live)


TestBoardsUnderChurn = pytest.mark.unit(BoardsUnderChurn.TestCase)
TestBoardsUnderChurn.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
