"""Stores of other kinds: one writer, whole lists only, views that stay as they were."""

from collections.abc import Callable

import pytest
from unit.observe.observed import deployment, make, node, pod, snapshot, stores

from autoscaler.kube import KINDS, StoreWriter, wire
from autoscaler.model.policy import Resources
from autoscaler.observe.stores import Stores


def test_every_kind_that_is_read_has_a_store_that_speaks_the_watchs_protocol() -> None:
    writers = Stores(Resources()).writers

    assert set(writers) == set(KINDS)
    for name, kind in KINDS.items():
        writer: StoreWriter[kind.struct] = writers[name]  # type: ignore[name-defined]
        writer.begin_relist()
        writer.relist_page([])
        writer.commit_relist("1")


def test_a_relist_replaces_what_was_and_a_view_keeps_it() -> None:
    filled = stores(node("old"))
    view = filled.freeze()
    filled.nodes.begin_relist()
    filled.nodes.relist_page([node("new")])
    filled.nodes.commit_relist("2")

    assert [row.name for row in view.nodes.values()] == ["old"]
    assert [row.name for row in filled.freeze().nodes.values()] == ["new"]


def test_a_deleted_object_and_an_object_without_a_row_are_gone() -> None:
    budget = make(wire.PodDisruptionBudget, "b", spec={"selector": {}})
    filled = stores(node("n"), budget)
    filled.nodes.delete(node("n"))
    filled.nodes.delete(node("never seen"))
    filled.budgets.apply(make(wire.PodDisruptionBudget, "b", spec={}))

    assert (len(filled.nodes), len(filled.budgets)) == (0, 0)


@pytest.mark.parametrize(
    "step", [lambda s: s.relist_page([]), lambda s: s.commit_relist("1")], ids=["page", "commit"]
)
@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_a_relist_that_never_began_is_a_defect(kind: str, step: Callable[[object], None]) -> None:
    with pytest.raises(RuntimeError):
        step(Stores(Resources()).writers[kind])


def test_namespaces_and_their_marks_are_kept() -> None:
    marks = {"gpu-autoscaler.io/allowed-gpus": "1", "other": "x"}
    (row,) = snapshot(make(wire.Namespace, "ml", namespace="", metadata={"annotations": marks})).namespaces

    assert (row.name, row.annotations) == ("ml", {"gpu-autoscaler.io/allowed-gpus": "1"})


def test_a_pod_and_its_workload_of_equal_content_share_a_shape() -> None:
    seen = snapshot(pod("p"), deployment("d"))

    assert len(seen.shapes) == 1
