"""A leader that is played against the model of the API server: all of what decides and acts, and none of its tasks."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from law import broken_laws
from service_fakes import HastyClock, RecordingLog

from autoscaler.act.contract import Site
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.act.writer import Writer
from autoscaler.decide import plan as decide_plan
from autoscaler.model.plan import Action, Refusal
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.cycle import Outcome
from autoscaler.service.hands import Hands
from autoscaler.service.policy_file import LoadedPolicy
from autoscaler.service.recheck import find_again
from autoscaler.service.telemetry import Metrics
from tests.model_server import ModelServer


class Played(Protocol):
    """The world that a leader is played in."""

    policy: Policy
    server: ModelServer

    def now(self) -> int: ...
    def snapshot(self, ledger: ConfigMapLedger) -> Snapshot: ...


class CrashError(BaseException):
    """The process is killed."""


@dataclass
class Reign:
    """An authority that lasts until somebody says otherwise."""

    term: int
    holder: str

    def remaining_s(self) -> float:
        return 10.0


class Process:
    """One leader with everything it knows; it forgets all of it when it crashes."""

    def __init__(self, world: Played, term: int) -> None:
        self.world = world
        self.name = f"process-{term}"
        self.ledger = ConfigMapLedger(
            namespace="own", now_ms=world.now, guards=lambda: world.policy.guards, shards=2
        )
        self.crash: tuple[Site, str, int] | None = None
        clock = HastyClock(speed=1000)
        server: Any = world.server
        self.hands = Hands(
            session=server,
            namespace="own",
            ledger=self.ledger,
            executor=Executor(self.ledger, now_ms=world.now, acts_per_minute=1e9),
            recheck=self.recheck,
            clock=clock,
            now_ms=world.now,
            metrics=Metrics(clock=clock.monotonic_s),
            log=RecordingLog(),  # type: ignore[arg-type]
        )
        self.writer = Writer(world.server, Reign(term, self.name), probe=self.probe)
        self.ours = False

    def probe(self, site: Site, when: Literal["before", "after"]) -> None:
        if self.crash is None or (site, when) != self.crash[:2]:
            return
        count = self.crash[2] - 1
        self.crash = (site, when, count)
        if count == 0:
            raise CrashError

    async def recheck(self, action: Action) -> Action | Refusal:
        return find_again(self.plan().plan, action)

    def plan(self) -> Outcome:
        snapshot = self.world.snapshot(self.ledger)
        rules = self.world.policy
        made = decide_plan(snapshot, rules, snapshot.taken_ms)
        assert broken_laws(snapshot, made, rules, snapshot.taken_ms) == []
        return Outcome(
            sequence=1,
            decision_id="1",
            plan=made,
            snapshot=snapshot,
            policy=LoadedPolicy(rules, "digest", "a test"),
            generated_ms=snapshot.taken_ms,
            generated_s=0.0,
        )

    async def turn(self) -> None:
        """What a leader does with a cycle."""
        stop = asyncio.Event()
        await self.hands.refresh(self.world.policy)
        if not self.ours:
            self.ours = await self.hands.take_over(self.writer, stop)
        await self.hands.work_through(self.plan(), self.writer, stop)
