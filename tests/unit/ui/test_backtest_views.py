import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from autoscaler.model.backtest import (
    HorizontalReport,
    HorizontalRow,
    PodLoad,
    PodOutcome,
    ReplicaLine,
    VerticalReport,
    VerticalRow,
)
from autoscaler.ui.backtest_page import PODS_SHOWN
from autoscaler.ui.backtest_plot import Mark, frontier
from autoscaler.ui.backtest_views import horizontal_view, vertical_view

HOSTILE = "evil\x1b[2J\u202e<script>alert(1)</script>"


def vertical_row(policy: str, **changed: float) -> VerticalRow:
    figures = {
        "freed_pct": 12.0, "oracle_pct": 40.0, "lost_pct": 0.1, "oom": 0, "blind": 0,
        "wrong_per_1000_pod_hours": 20.0, "restarts_per_pod_day": 1.0, "cold_starts_per_pod_day": 0.5,
    }  # fmt: skip
    figures.update(changed)
    return VerticalRow(policy=policy, board_gib=48.0, gaps=True, pods=2, **figures)  # type: ignore[arg-type]


def outcome(
    policy: str, pod: str, *, wrong: int = 0, changes: tuple[tuple[int, int], ...] = ()
) -> PodOutcome:
    return PodOutcome(
        policy=policy, pod=pod, hours=1.0, freed_pct=50.0, lost_pct=0.0, oom=0, blind=0, wrong=wrong,
        restarts=0, cold_starts=1, changes=changes,
    )  # fmt: skip


def load(pod: str) -> PodLoad:
    return PodLoad(
        pod=pod, first_step=2, last_step=9, bucket_steps=2, duty=(0.5,) * 4, memory_gib=(12.0,) * 4
    )


def report(*pods: str, policies: tuple[str, ...] = ("autoscaler-careful", "other")) -> VerticalReport:
    return VerticalReport(
        rows=tuple(vertical_row(policy) for policy in policies),
        step_s=57.0,
        pods=len(pods),
        pod_hours=2.0,
        oracle_freed_pct=31.9,
        ceiling_pct=56.0,
        outcomes=tuple(outcome(policy, pod, changes=((4, 0), (7, 5))) for policy in policies for pod in pods),
        loads=tuple(map(load, pods)),
    )


def drawings(page: str) -> list[ET.Element]:
    """Every drawing of a page; a fault in one is an error here."""
    return [ET.fromstring(f"<svg{part.split('</svg>')[0]}</svg>") for part in page.split("<svg")[1:]]


def horizontal() -> HorizontalReport:
    rows = tuple(
        HorizontalRow(
            policy=policy, service="chat", replica_hours_x_oracle=cost, unserved_pct=lost, acts_per_hour=2.0
        )
        for policy, cost, lost in (("autoscaler", 1.1, 0.0), ("bad", 0.9, 7.0), (HOSTILE, 3.0, 0.01))
    )
    lines = tuple(
        ReplicaLine(policy=row.policy, service="chat", hours=2.0, load=(1.0, 3.0), requested=(2, 4))
        for row in rows
    )
    return HorizontalReport(rows=rows, lines=lines)


def test_json_is_the_rows_and_nothing_else() -> None:
    assert [row["policy"] for row in json.loads(vertical_view(report("a"), form="json"))] == [
        "autoscaler-careful",
        "other",
    ]
    assert [row["acts_per_hour"] for row in json.loads(horizontal_view(horizontal(), form="json"))] == [
        2.0
    ] * 3


def test_the_table_says_what_the_figures_are_measured_against() -> None:
    text = vertical_view(report("a", "b"))

    assert "gaps yes" in text
    assert "oracle frees 31.9 %" in text
    assert "56 % of that" in text


def test_foreign_names_do_no_harm_in_any_form() -> None:
    for form in ("table", "json", "html"):
        for text in (
            vertical_view(report(HOSTILE, policies=(HOSTILE,)), form=form),
            horizontal_view(horizontal(), form=form),
        ):
            assert "\x1b" not in text
            assert "\u202e" not in text
            if form == "html":
                assert "<script" not in text


def test_a_page_needs_nothing_from_anywhere() -> None:
    for page in (vertical_view(report("a"), form="html"), horizontal_view(horizontal(), form="html")):
        for foreign in ("http:", "https:", "<link", "@import", "url(", "src="):
            assert foreign not in page


def test_every_drawing_is_well_formed_and_no_name_in_it_is_used_twice() -> None:
    page = vertical_view(report("a", "b"), form="html")
    names = [
        element.get("id") for drawing in drawings(page) for element in drawing.iter() if element.get("id")
    ]

    assert len(drawings(page)) == 2 + 2
    assert len(names) == len(set(names)) == 4
    assert len(drawings(horizontal_view(horizontal(), form="html"))) == 2


def test_the_allocation_is_drawn_as_a_staircase_over_the_pods_life() -> None:
    *_, strips = drawings(vertical_view(report("a"), form="html"))
    held = [
        element.get("d") for element in strips.iter("path") if (element.get("class") or "").startswith("held")
    ]

    assert held == ["M144.0 0.0H288.0V34.0H504.0V0.0H720.0"] * 2


def test_a_change_after_the_last_step_is_not_drawn() -> None:
    late = report("a", policies=("other",))
    page = vertical_view(
        VerticalReport(
            rows=late.rows, step_s=57.0, pods=1, pod_hours=1.0, oracle_freed_pct=1.0, ceiling_pct=1.0,
            outcomes=(outcome("other", "a", changes=((10, 0),)),), loads=late.loads,
        ),
        form="html",
    )  # fmt: skip

    assert "M144.0 0.0H720.0" in page


def test_the_pods_where_ours_went_wrong_come_first_and_the_rest_is_counted() -> None:
    pods = [f"pod-{number:03}" for number in range(PODS_SHOWN + 5)]
    many = report(*pods, policies=("autoscaler-careful",))
    troubled = VerticalReport(
        rows=many.rows, step_s=57.0, pods=len(pods), pod_hours=1.0, oracle_freed_pct=1.0, ceiling_pct=1.0,
        outcomes=tuple(outcome("autoscaler-careful", pod, wrong=int(pod == pods[-1])) for pod in pods),
        loads=many.loads,
    )  # fmt: skip
    page = vertical_view(troubled, form="html")

    assert page.count("<details>") == PODS_SHOWN
    assert "5 pods with less to see are left out" in page
    assert page.index(pods[-1]) < page.index(pods[0])


def test_without_drawings_there_is_no_heading_for_them() -> None:
    bare = VerticalReport(rows=(), step_s=57.0, pods=0, pod_hours=0.0, oracle_freed_pct=0.0, ceiling_pct=0.0)

    assert "Pod by pod" not in vertical_view(bare, form="html")
    assert "pods 0" in vertical_view(bare)
    assert "<details>" not in horizontal_view(HorizontalReport(rows=horizontal().rows), form="html")


@pytest.mark.parametrize(
    ("mark", "shape"),
    [
        (Mark(name="autoscaler-careful", harm=20.0, saved=40.0), '<circle class="ours"'),
        (Mark(name="other", harm=20.0, saved=40.0), '<circle class="other"'),
        (Mark(name="bad", harm=20.0, saved=40.0, broken="3 OOM"), '<path class="broken"'),
    ],
)
def test_a_mark_shows_whose_it_is_and_whether_it_breaks(mark: Mark, shape: str) -> None:
    assert shape in frontier([mark], harm_axis="harm", saved_axis="saved", saved_top=100)


def test_less_harm_is_left_and_more_saved_is_up_and_nothing_leaves_the_plot() -> None:
    marks = [
        Mark(name="a", harm=0.0, saved=0.0),
        Mark(name="b", harm=1.0, saved=50.0),
        Mark(name="c", harm=500.0, saved=267.0),
    ]
    drawing = ET.fromstring(frontier(marks, harm_axis="harm", saved_axis="saved", saved_top=100))
    places = [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in drawing.iter("circle")]

    assert places == sorted(places, key=lambda place: -place[0])
    assert places == sorted(places, key=lambda place: place[1])
    assert min(y for _, y in places) == 14.0


def test_labels_do_not_lie_on_each_other() -> None:
    marks = [Mark(name=f"policy-{number}", harm=10.0, saved=40.0) for number in range(6)]
    drawing = ET.fromstring(frontier(marks, harm_axis="harm", saved_axis="saved", saved_top=100))
    heights = sorted(
        float(text.get("y", ""))
        for text in drawing.iter("text")
        if (text.get("class") or "").startswith("label")
    )

    assert all(later - earlier >= 13 for earlier, later in pairwise(heights))
