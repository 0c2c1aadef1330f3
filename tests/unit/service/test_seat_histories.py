"""Random histories of making room: the leader against a model of the API server and of the scheduler.

One node, all of it held: by a class that yields, and by a workload that is idle and of lower priority. Work of high priority
comes, waits and goes; disruption budgets, protection and monitoring come and go; leaders crash at any request, change, and
lose answers. Whatever happens, every plan is lawful at its moment, the law of the audit log holds, nobody is evicted while
nobody waits or past a budget, no more is evicted than was asked for, and no nomination of ours outlives its act.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from build import GPU, NOW_MS, Spec, boards, burst, cluster, node, policy, waiting
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from autoscaler.act.contract import AuthorityLostError, Site
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.model.cluster import Budget, PodRow
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import Snapshot
from tests import audit_law
from tests.model_server import ModelServer
from tests.played_leader import CrashError, Process

pytestmark = pytest.mark.timeout(300)
MINUTE_MS = 60_000
COOLDOWN_S = 3600
CAPACITY = 5
VICTIMS = {"burst": 2, "extra": 1, "lazy": 2}
"""Replicas of one board each."""
RULES = policy(
    modes={"default": "recommend", "makeRoom": "apply"},
    guards={"quietPeriod": "0s", "cooldown": f"{COOLDOWN_S}s"},
    budgets={"podsPerWorkload": 1.0, "fleetPerHour": 1.0, "fleetPerDay": 1.0, "namespaceShare": 1.0},
)
CRASH_SITES = [
    *(Site.DRY_RUN, Site.LEDGER_INTENT, Site.NOMINATE, Site.UNNOMINATE, Site.EVICT, Site.LEDGER_OUTCOME)
]


@dataclass
class Held:
    """A pod of the model: where it runs and since when."""

    name: str
    workload: str
    uid: str
    gpus: int = 1
    node: str = ""
    since_ms: int = 0


@dataclass
class Asked:
    """Waiting work, by its uid: what it asked for, and what was evicted for it."""

    gpus: int
    evicted: int = 0


class SeatHistories(RuleBasedStateMachine):
    policy = RULES

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW_MS
        self.server = ModelServer(self.now)
        self.server.budget = self.lets_go
        self.serial = 0
        self.pods: dict[str, Held] = {}
        for workload, replicas in VICTIMS.items():
            for index in range(replicas):
                self.make(f"{workload}-{index}", workload, placed_ms=NOW_MS - 60 * 24 * 60 * MINUTE_MS)
        self.asked: dict[str, Asked] = {}
        self.kept: int | None = None
        self.blind: set[str] = set()
        self.protected: set[str] = set()
        self.zombies: list[Process] = []
        self.term = 0
        self.runner = asyncio.Runner()
        self.leader = self.new_leader()

    def now(self) -> int:
        return self.now_ms

    def teardown(self) -> None:
        try:
            self.everything_settles()
            self.the_law_holds()
        finally:
            self.runner.close()

    def new_leader(self) -> Process:
        self.term += 1
        process = Process(self, self.term)
        self.server.agent = process.name
        self.server.lease_taken(process.name)
        return process

    def make(self, name: str, workload: str, *, gpus: int = 1, placed_ms: int | None = None) -> Held:
        """A new pod; it waits unless it is placed."""
        self.serial += 1
        pod = Held(name, workload, f"uid-{name}-{self.serial}", gpus)
        self.pods[name] = pod
        metadata = {"name": name, "namespace": "team", "uid": pod.uid, "annotations": {}}
        self.server.pods[name] = {"metadata": metadata, "spec": {}, "status": {"phase": "Pending"}}
        if placed_ms is not None:
            self.place(pod, placed_ms)
        return pod

    def place(self, pod: Held, at_ms: int) -> None:
        pod.node, pod.since_ms = "node-1", at_ms
        document = self.server.pods[pod.name]
        document["spec"]["nodeName"] = "node-1"
        document["status"] = {"phase": "Running"}

    def nominated(self, pod: Held) -> str:
        return str(self.server.pods[pod.name].get("status", {}).get("nominatedNodeName", ""))

    def controllers_and_scheduler(self) -> None:
        """Evicted pods are made anew; who is nominated keeps its room, the highest priority is placed first."""
        for name, pod in list(self.pods.items()):
            if name not in self.server.pods:
                self.make(name, pod.workload)
        free = CAPACITY - sum(pod.gpus for pod in self.pods.values() if pod.node)
        pending = [pod for pod in self.pods.values() if not pod.node]
        order = {"urgent": 0, "burst": 1, "extra": 1, "lazy": 2}
        for pod in sorted(pending, key=lambda one: order[one.workload]):
            kept = sum(
                other.gpus
                for other in pending
                if other is not pod
                and not other.node
                and self.nominated(other)
                and other.workload == "urgent"
            )
            if pod.gpus <= free - kept:
                self.place(pod, self.now_ms)
                free -= pod.gpus

    def lets_go(self, name: str) -> bool:
        """The disruption budget of burst, while there is one."""
        return not name.startswith("burst-") or self.kept is None or self.running("burst") > self.kept

    def running(self, workload: str) -> int:
        return sum(1 for pod in self.pods.values() if pod.workload == workload and pod.node)

    def snapshot(self, ledger: ConfigMapLedger) -> Snapshot:
        """What the watches would show now."""
        self.hear_evictions()
        self.controllers_and_scheduler()
        specs = [self.spec(name, replicas) for name, replicas in VICTIMS.items()]
        urgent = [pod for pod in self.pods.values() if pod.workload == "urgent"]
        specs += [waiting("urgent", gpus=pod.gpus, workload={"uid": pod.uid}) for pod in urgent]
        seen = cluster(*specs, nodes=(node(gpus=CAPACITY),), budgets=tuple(self.budgets()))
        rows = tuple(self.as_it_is(row) for row in seen.pods)
        return msgspec.structs.replace(seen, taken_ms=self.now_ms, pods=rows, acts=ledger.past_acts())

    def spec(self, name: str, replicas: int) -> Spec:
        annotations = {"gpu-autoscaler.io/do-not-disrupt": "true"} if name in self.protected else {}
        shows = [self.pods[f"{name}-{index}"].node and name not in self.blind for index in range(replicas)]
        if name == "lazy":
            seen = tuple(boards(0.0) if shown else None for shown in shows)
            return Spec(name, seen=seen, annotations=annotations, shape={"priority": 0})
        found = tuple(boards(0.9) if shown else None for shown in shows)
        return burst(name).but(seen=found, annotations=annotations)

    def as_it_is(self, row: PodRow) -> PodRow:
        pod = self.pods[row.name]
        state: dict[str, Any] = {"uid": pod.uid, "nominated_node": self.nominated(pod)}
        if pod.node:
            state |= {"node": pod.node, "phase": "Running", "ready": True, "unschedulable": ""}
            state |= {"started_ms": pod.since_ms, "ready_ms": pod.since_ms, "created_ms": pod.since_ms}
        else:
            short = f"0/1 nodes are available: 1 Insufficient {GPU}."
            state |= {"node": "", "phase": "Pending", "ready": False, "unschedulable": short}
            state |= {"started_ms": -1, "ready_ms": -1}
        return msgspec.structs.replace(row, **state)

    def budgets(self) -> Iterator[Budget]:
        if self.kept is not None:
            healthy = self.running("burst")
            yield Budget(
                "team",
                "keep",
                LabelSelector({"app": "burst"}),
                minimum=str(self.kept),
                allowed=max(0, healthy - self.kept),
                current_healthy=healthy,
                desired_healthy=self.kept,
                expected_pods=VICTIMS["burst"],
            )

    def hear_evictions(self) -> None:
        """Every accepted eviction since the last look was for somebody who waited, and within what was asked for."""
        gone = [pod for name, pod in self.pods.items() if name not in self.server.pods and pod.node]
        for victim in gone:
            assert victim.workload in VICTIMS
            waits = [pod for pod in self.pods.values() if pod.workload == "urgent" and not pod.node]
            assert len(waits) == 1, f"{victim.name} was evicted for nobody"
            asked = self.asked[waits[0].uid]
            asked.evicted += victim.gpus
            assert asked.evicted <= asked.gpus + self.given_up(waits[0].uid)
            victim.node = ""

    def given_up(self, uid: str) -> int:
        """Boards that were evicted for a seat that did not come about in time."""
        records = [record for entry in self.leader.ledger.entries.values() for record in entry.records]
        seats = [record.action.seat for record in records if record.state == "failed"]
        return sum(1 for seat in seats if seat is not None and seat.pod.uid == uid)

    def turn(self, process: Process) -> None:
        self.server.agent = process.name
        try:
            self.runner.run(asyncio.wait_for(process.turn(), 20))
        finally:
            self.hear_evictions()
            self.controllers_and_scheduler()

    def works(self, minutes: int) -> None:
        self.now_ms += minutes * MINUTE_MS
        self.server.lease_taken(self.leader.name)
        self.turn(self.leader)

    @rule(minutes=st.integers(1, 90))
    def time_passes_and_the_leader_works(self, minutes: int) -> None:
        self.works(minutes)

    @rule(
        site=st.sampled_from(CRASH_SITES),
        when=st.sampled_from(["before", "after"]),
        count=st.integers(1, 3),
        minutes=st.integers(1, 90),
    )
    def the_leader_is_killed_at_a_request(self, site: Site, when: str, count: int, minutes: int) -> None:
        self.leader.crash = (site, when, count)
        try:
            self.works(minutes)
        except CrashError:
            self.now_ms += MINUTE_MS
            self.leader = self.new_leader()
        else:
            self.leader.crash = None

    @rule()
    def another_process_takes_over(self) -> None:
        self.zombies.append(self.leader)
        self.now_ms += MINUTE_MS
        self.leader = self.new_leader()
        self.turn(self.leader)

    @rule(answers=st.integers(1, 2))
    def answers_are_lost(self, answers: int) -> None:
        self.server.lose_answers = answers
        self.works(5)
        self.server.lose_answers = 0

    @rule()
    def a_former_leader_wakes_and_works_on(self) -> None:
        if not self.zombies:
            return
        zombie = self.zombies.pop()
        zombie.ours = True
        try:
            self.turn(zombie)
        except AuthorityLostError:
            return
        finally:
            self.server.agent = self.leader.name

    @rule(gpus=st.integers(1, 3))
    def urgent_work_comes(self, gpus: int) -> None:
        if "urgent-0" not in self.pods:
            pod = self.make("urgent-0", "urgent", gpus=gpus)
            self.asked[pod.uid] = Asked(gpus)
            self.controllers_and_scheduler()

    @rule()
    def urgent_work_ends_or_gives_up(self) -> None:
        if self.pods.pop("urgent-0", None):
            del self.server.pods["urgent-0"]
            self.controllers_and_scheduler()

    @rule(kept=st.none() | st.integers(0, 2))
    def a_disruption_budget_comes_or_goes(self, kept: int | None) -> None:
        self.kept = kept

    @rule(name=st.sampled_from(sorted(VICTIMS)))
    def monitoring_of_one_goes_blind_or_sees_again(self, name: str) -> None:
        self.blind ^= {name}

    @rule(name=st.sampled_from(sorted(VICTIMS)))
    def an_owner_protects_or_releases(self, name: str) -> None:
        self.protected ^= {name}

    def everything_settles(self) -> None:
        """With nobody waiting any more, nothing of ours is left on any pod once the acts have ended."""
        self.urgent_work_ends_or_gives_up()
        for _ in range(3):
            self.works(60)
        for pod in self.pods.values():
            assert not self.nominated(pod), pod.name
        assert [entry for entry in self.leader.ledger.entries.values() if entry.open_record] == []

    def woken(self) -> set[str]:
        return {f"process-{term}" for term in range(1, self.term) if f"process-{term}" != self.leader.name}

    def the_law_holds(self) -> None:
        # As in the histories of changes: a former leader that does not know it may rehearse and take back marks of ours.
        history = [
            one
            for one in audit_law.writes_of(self.server.events)
            if one.agent not in self.woken()
            or (one.accepted and not one.dry_run and not isinstance(one.body, list))
        ]
        assert audit_law.violations(history, cooldown_s=COOLDOWN_S) == []

    @invariant()
    def nobody_holds_more_than_there_is(self) -> None:
        assert sum(pod.gpus for pod in self.pods.values() if pod.node) <= CAPACITY


SeatHistories.TestCase.settings = settings(
    max_examples=max(20, settings().max_examples // 4),
    stateful_step_count=20,
    deadline=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
TestSeatHistories = SeatHistories.TestCase
