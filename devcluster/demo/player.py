"""Plays the story: does what people do when a scene opens, looks until its claims hold, and puts everything back at the end."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devcluster.demo.owners import Operator, Owners
from devcluster.demo.phases import Phase
from devcluster.demo.proof import Key, differing
from devcluster.demo.service import read_ledger, run_command
from devcluster.demo.show import Show
from devcluster.demo.story import SCENES, Scene, Story, after

_LOOK_INTERVAL_S = 0.5
_CALM_DEADLINE_S = 30.0


@dataclass
class Player:
    """One performance. `before` is what the workloads' owners had written before the first act."""

    show: Show
    owners: Owners
    operator: Operator
    story: Story
    picture: Callable[[], None]
    before: dict[Key, dict[str, Any]] = field(default_factory=dict)
    undone: int = 0
    faults: list[str] = field(default_factory=list)

    async def play(self, *, days: int) -> None:
        """Plays all scenes in order, then the day again for so many days in all; a scene that fails is the last one."""
        scene: Scene | None = SCENES[0]
        while scene is not None:
            await self._open(scene)
            verdict = "wait"
            while verdict == "wait":
                await asyncio.sleep(_LOOK_INTERVAL_S)
                findings = self.show.claims.of(scene.phase, await self.show.look())
                verdict = self.story.hear(findings, time.monotonic())
                self.picture()
            if verdict == "failed":
                self.faults += self.story.faults()
                return
            days -= scene is SCENES[-1]
            scene = after(scene, again=days > 0)

    async def _open(self, scene: Scene) -> None:
        self.story.begin(scene, time.monotonic())
        self.show.turn_page(scene.phase)
        match scene.phase:
            case Phase.RECOMMEND:
                self.operator.allow("recommend")
            case Phase.APPLY:
                self.before = await self.owners.workloads()
                self.operator.allow("apply")
            case Phase.DAY:
                await self.owners.begin_day()
            case Phase.NIGHT:
                self.show.runs = await self.owners.begin_night()
            case Phase.DAWN:
                await self.owners.end_training(self.show.claims.trainings(self.show.sight()))
            case Phase.EVENING:
                await self.owners.end_day()

    async def put_back(self) -> None:
        """Ends all acting, undoes every act and proves that the workloads are as they were before the first."""
        if not self.before:
            return
        self.operator.allow("recommend")
        await self._until(self._only_recommends, "the service acts no more")
        await self.owners.end_everything()
        changed = differing(self.before, await self.owners.workloads())
        result = await run_command(self.show.cluster, self.operator.policy_file, "undo", "--all", "--yes")
        if result.exit_code:
            self.faults.append(f"undo --all ended with {result.exit_code}: {result.errors.strip()[-800:]}")
        left = differing(self.before, await self.owners.workloads())
        self.undone = len(changed.keys() - left.keys())
        self.faults += [
            f"not put back: {'/'.join(key)} {line}" for key, lines in left.items() for line in lines
        ]
        await self._until(self.owners.are_all_available, "every Deployment has its replicas")
        await self.show.look()
        self.show.entries = await read_ledger(self.show.cluster, self.operator.policy_file)

    async def _only_recommends(self) -> bool:
        plan = (await self.show.look()).plan
        return plan is not None and plan.mode == "recommend"

    async def _until(self, holds: Callable[[], Any], what: str) -> None:
        deadline_s = time.monotonic() + _CALM_DEADLINE_S
        while not await holds():
            if time.monotonic() > deadline_s:
                self.faults.append(f"not within {_CALM_DEADLINE_S:.0f} s: {what}")
                return
            await asyncio.sleep(_LOOK_INTERVAL_S)
