"""An exporter loses its owner labels on every board: nothing is taken away until it is mended and a window has passed."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from autoscaler.model.plan import Plan
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.exporter.fleet import BoardView
from devcluster.rooms import Room
from tests.cluster.live_service import (
    QUICK_POLICY,
    LiveService,
    PlanDocument,
    grant_shipped_rights,
    run_command,
    running_service,
)
from tests.cluster.page_exporter import PageExporter, board_lines, page_exporter
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, play

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

WINDOW_S = 15
RULES = {
    "AUTOSCALER_EVIDENCE_WINDOW": f"{WINDOW_S}s",
    "AUTOSCALER_EVIDENCE_MIN_COVERAGE": "0.6",  # measured again well before the window is whole
    "AUTOSCALER_EVIDENCE_FLEET_COVERAGE": "0.8",
    "AUTOSCALER_EVIDENCE_FLEET_FALL": "0.2",
    "AUTOSCALER_METHODS_IDLE_FLOOR": f"{WINDOW_S}s",
}
APPS = ("one", "two")


@pytest.fixture(scope="module")
def pages() -> Iterator[PageExporter]:
    with page_exporter() as started:
        yield started


def page(boards: list[BoardView], *, named: bool) -> str:
    """Each pod works on its first board only; an exporter without its labels shows the same boards as nobody's."""
    busy = {board.pod: board.uuid for board in reversed(boards)}
    return "".join(
        board_lines(
            board,
            engine="0.4" if busy[board.pod] == board.uuid else "0",
            watts=200 if busy[board.pod] == board.uuid else 60,
            owner=None if named else {},
        )
        for board in boards
    )


async def staged_boards(room: Room) -> list[BoardView]:
    """Two Deployments of two boards each, with two boards left for the surges of their rollouts."""
    await room.add_nodes(boards=6)
    for count, name in enumerate(APPS, start=1):
        load = half_used(room, name=name, silent=True)
        await play(room, room.deployment(name, boards=2), load=load, pods=count)
    return await eventually(room.boards, lambda seen: len(seen) == 4, what="the held boards", timeout_s=20)


def log_of(service: LiveService) -> list[dict[str, Any]]:
    """The service's log, in order."""
    lines = Path(service.component.command.log_path).read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


async def until_breaker(service: LiveService, value: str) -> None:
    """Waits for the breaker's state on `/metrics`."""
    line = f'gpu_autoscaler_breaker_open{{name="fleet"}} {value}'
    await eventually(
        lambda: service.get("/metrics"), lambda seen: line in seen[1], what=line, timeout_s=WINDOW_S * 3
    )


async def until_frozen(service: LiveService, words: str) -> PlanDocument:
    """The plan once the fleet is frozen for a cause."""
    return await eventually(
        service.plan,
        lambda seen: words in seen.plan.fleet.health.frozen,
        what=f"a fleet that is frozen: {words}",
        timeout_s=WINDOW_S * 2,
    )


async def test_lost_labels_freeze_the_fleet_until_a_full_window_after_they_are_mended(
    cluster: Cluster, room: Room, pages: PageExporter
) -> None:
    boards = await staged_boards(room)
    pages.show(cluster, room.namespace, page(boards, named=True))
    kubeconfig = await grant_shipped_rights(cluster)
    rules = {**QUICK_POLICY, **RULES, "AUTOSCALER_NAMESPACES": room.namespace}

    async with running_service(cluster, kubeconfig, name="breaker", environment=rules) as service:
        for name in APPS:
            await service.until_reason(room, name, Reason.RIGHT_SIZED)
        await until_breaker(service, "0.0")

        pages.pages[f"/{room.namespace}"] = page(boards, named=False)
        fallen = await until_frozen(service, "attribution fell by 100%")
        await until_breaker(service, "1.0")
        _, readiness = await service.get("/readyz?verbose")
        output, _ = await run_command(
            *("plan", "-o", "json"),
            environment={
                **rules,
                "AUTOSCALER_KUBECONFIG": str(kubeconfig),
                "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
            },
        )
        alone = msgspec.json.decode(output, type=Plan)

        pages.pages[f"/{room.namespace}"] = page(boards, named=True)
        mended = await service.until_reason(room, APPS[0], Reason.FLEET_BLIND)
        waiting = await service.plan()
        for name in APPS:
            await service.until_reason(room, name, Reason.RIGHT_SIZED)
        await until_breaker(service, "0.0")
        log = log_of(service)

    assert fallen.plan.actions == ()
    assert {row.workload.name for row in fallen.plan.rows} == set(APPS)
    for row in fallen.plan.rows:
        assert Reason.FLEET_BLIND in {refusal.reason for refusal in row.refusals}
    assert "[!]fleet degraded: frozen: " in readiness

    # A process that has only just started sees it in the store's own data.
    assert (alone.actions, alone.fleet.health.measured) == ((), 0)
    assert alone.fleet.health.frozen == "0 of 2 units measured, 80% needed"

    assert f"a full window of {WINDOW_S}s is needed after an incident" in mended.detail
    assert (waiting.plan.fleet.health.measured, waiting.plan.actions) == (2, ())
    told = [entry["msg"] for entry in log if entry["msg"] in {"decision", "fleet_frozen", "fleet_free"}]
    frozen = told.index("fleet_frozen")
    assert told[frozen:][:4] == ["fleet_frozen", "fleet_free", "decision", "decision"]
    # A busy machine may lose a scrape of so short a window later on: that freezes it again, and nothing is decided then.
    assert ("fleet_frozen", "decision") not in pairwise(told)
