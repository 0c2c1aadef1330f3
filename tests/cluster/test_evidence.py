"""Missing, stale, partial and zero are four different things, also when a real Prometheus tells them."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import msgspec
import pytest
import pytest_asyncio

from autoscaler.model.plan import Plan
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.exporter.fleet import BoardView
from devcluster.exporter.load import Gap
from devcluster.prometheus import EXPORTER_JOB, OTHER_JOB
from devcluster.rooms import Room
from tests.cluster.live_service import (
    QUICK_POLICY,
    LiveService,
    grant_shipped_rights,
    only_row,
    run_command,
)
from tests.cluster.page_exporter import PageExporter, board_lines, page_exporter
from tests.cluster.polling import eventually
from tests.cluster.stories import Stage, half_used, play, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

EXPORTER_POD = "dcgm-exporter"
Page = Callable[[list[BoardView]], str]


def exported_owner(board: BoardView) -> dict[str, str]:
    """What an exporter says of a board; Prometheus renames what the target's own labels already say."""
    return {"pod": board.pod, "namespace": board.namespace, "container": board.container}


PAGES: dict[str, Page] = {
    "half": lambda boards: board_lines(boards[0]),
    "nan": lambda boards: board_lines(boards[0]) + board_lines(boards[1], engine="NaN", watts=60),
    "whole": lambda boards: board_lines(boards[0]) + board_lines(boards[1], engine="0", watts=60),
    "nobody": lambda boards: "".join(board_lines(board, owner={}) for board in boards),
    "powered": lambda boards: "".join(board_lines(board, engine="0", watts=390) for board in boards),
    "shared": lambda boards: "".join(
        board_lines(board, owner=exported_owner(board) | {"pod": pod})
        for board in boards
        for pod in {board.pod, boards[0].pod}
    ),
    "stray": lambda boards: (
        board_lines(boards[0])
        + board_lines(boards[1], engine="0", watts=60)
        + board_lines(msgspec.structs.replace(boards[0], uuid="GPU-stray", index=7), engine="0.9", owner={})
    ),
}
"""What an exporter shows of a Deployment's two boards, by story."""

TARGET_LABELS = {"pod": EXPORTER_POD}


async def gap(room: Room) -> None:
    """One scrape in three finds nothing."""
    await room.add_nodes(boards=4)
    gaps = tuple(Gap(after_s=3 * number, for_s=1) for number in range(200))
    await play(room, room.deployment("app", boards=2), load=half_used(room, gaps=gaps))


async def silence(room: Room) -> None:
    """No series at all."""
    await room.add_nodes(boards=4)
    await play(room, room.deployment("app", boards=2), load=half_used(room, silent=True))


async def shown(
    pages: PageExporter, page: str, room: Room, *, boards: int, replicas: int, labels: bool
) -> None:
    """Series of the page exporter only; its pod is there as well, as a DaemonSet's would be."""
    await room.add_nodes(boards=boards)
    await play(
        room,
        room.deployment("app", boards=2, replicas=replicas),
        room.pod(EXPORTER_POD, boards=0),
        load=half_used(room, silent=True),
        pods=replicas + 1,
    )
    held = await eventually(
        room.boards, lambda seen: len(seen) == 2 * replicas, what="the held boards", timeout_s=20
    )
    target = {"pod": EXPORTER_POD, "namespace": room.namespace} if labels else {}
    pages.show(room.cluster, room.namespace, PAGES[page](held), target)


@pytest.fixture(scope="module")
def pages() -> Iterator[PageExporter]:
    with page_exporter() as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rooms(cluster: Cluster, pages: PageExporter) -> AsyncIterator[dict[str, Room]]:
    roomy = partial(shown, pages, boards=4, replicas=1, labels=False)
    stages: dict[str, Stage] = {
        "gap": gap,
        "silence": silence,
        "half": partial(roomy, "half"),
        "nan": partial(roomy, "nan"),
        "stray": partial(roomy, "stray"),
        "stopped": partial(roomy, "whole"),
        "powered": partial(roomy, "powered"),
        "shared": partial(shown, pages, "shared", boards=4, replicas=2, labels=False),
        "exported": partial(shown, pages, "whole", boards=4, replicas=1, labels=True),
        "nobody": partial(shown, pages, "nobody", boards=2, replicas=1, labels=True),
    }
    async with staged(cluster, stages) as opened:
        yield opened


@pytest.mark.parametrize(
    ("story", "reason", "told"),
    [
        ("gap", Reason.EVIDENCE_PARTIAL, "% of the samples of 10s, 80% needed"),
        ("silence", Reason.EVIDENCE_ABSENT, "no sample in 10s"),
        ("half", Reason.EVIDENCE_PARTIAL, "1 of 2 boards seen"),
        ("nan", Reason.EVIDENCE_PARTIAL, "no numbers"),
        ("nobody", Reason.EVIDENCE_UNATTRIBUTED, "2 boards"),
        ("powered", Reason.EVIDENCE_CONTRADICTORY, "activity is 0 while power"),
        ("stray", Reason.EVIDENCE_CONTRADICTORY, "a busy board without owner"),
        ("shared", Reason.SHARED_BOARD, "several pods"),
    ],
)
async def test_evidence_that_is_not_whole_takes_nothing_away(
    service: LiveService, rooms: dict[str, Room], story: str, reason: Reason, told: str
) -> None:
    row = await service.until_reason(rooms[story], "app", reason)

    assert told in row.detail
    assert (row.action, row.verdict, row.use_ratio) == (None, "unknown", None)
    assert service.decisions(rooms[story]) == []


async def test_owners_in_exported_labels_are_read_and_the_exporters_own_pod_is_not_one(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["exported"]
    row = await service.until_reason(room, "app", Reason.RIGHT_SIZED)
    series = await room.cluster.query(f'DCGM_FI_DEV_FB_USED{{exported_namespace="{room.namespace}"}}')

    assert {one["metric"]["pod"] for one in series} == {EXPORTER_POD}
    assert row.action is not None
    assert (row.action.before, row.action.after, row.signal) == (2, 1, "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    assert await service.rows(room.namespace, EXPORTER_POD) == []


async def test_an_exporter_that_stops_makes_its_boards_stale_then_absent_and_ends_the_recommendation(
    service: LiveService, rooms: dict[str, Room], pages: PageExporter
) -> None:
    room = rooms["stopped"]
    await service.until_reason(room, "app", Reason.RIGHT_SIZED)
    pages.take_away(room.namespace)

    stale = await service.until_reason(room, "app", Reason.EVIDENCE_STALE, timeout_s=20)
    absent = await service.until_reason(room, "app", Reason.EVIDENCE_ABSENT, timeout_s=30)

    assert "newest sample is" in stale.detail
    assert (stale.action, absent.action) == (None, None)


async def test_without_a_pin_two_scrape_jobs_leave_the_whole_fleet_without_an_owner(
    cluster: Cluster, service: LiveService, rooms: dict[str, Room]
) -> None:
    await service.until_reason(rooms["exported"], "app", Reason.RIGHT_SIZED)
    kubeconfig = await grant_shipped_rights(cluster)
    unpinned = {name: value for name, value in QUICK_POLICY.items() if not name.endswith("_SOURCE_JOB")}
    output, _ = await run_command(
        *("plan", "-o", "json"),
        environment={
            **unpinned,
            "AUTOSCALER_KUBECONFIG": str(kubeconfig),
            "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
        },
    )
    plan = msgspec.json.decode(output, type=Plan)
    row = only_row(plan, rooms["exported"], "app")

    assert plan.actions == ()
    assert row.reason == Reason.EVIDENCE_UNATTRIBUTED
    assert f"{EXPORTER_JOB}, {OTHER_JOB}" in row.detail
    assert "set evidence.sourceJob" in row.detail
    assert "scrape jobs pinned by" in await service.until_ready()


async def test_a_fleet_that_is_mostly_dark_freezes_those_that_are_measured(
    cluster: Cluster, service: LiveService, rooms: dict[str, Room]
) -> None:
    await service.until_reason(rooms["exported"], "app", Reason.RIGHT_SIZED)
    await service.until_reason(rooms["silence"], "app", Reason.EVIDENCE_ABSENT)
    kubeconfig = await grant_shipped_rights(cluster)
    fleet = [rooms[name].namespace for name in ("exported", "silence", "half")]
    output, _ = await run_command(
        *("plan", "-o", "json"),
        environment={
            **QUICK_POLICY,
            "AUTOSCALER_KUBECONFIG": str(kubeconfig),
            "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
            "AUTOSCALER_NAMESPACES": ",".join(fleet),
            "AUTOSCALER_EVIDENCE_FLEET_COVERAGE": "0.8",
        },
    )
    plan = msgspec.json.decode(output, type=Plan)
    row = only_row(plan, rooms["exported"], "app")

    assert plan.actions == ()
    assert (row.reason, row.detail) == (Reason.FLEET_BLIND, "1 of 3 units measured, 80% needed")
