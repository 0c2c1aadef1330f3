"""Random histories: planner, hands, executor and ledger against a model of the API server that anybody else may change too.

Processes crash at any request, answers are lost, leaders change and their predecessors do not know it, owners apply other
values, delete and make anew, put our changes back, new pods do not become ready, monitoring goes blind, disruption budgets come
and go. Whatever happens, every plan is lawful at its moment, the law of the audit log holds, an original is never lost, and putting everything back restores what owners had there.
"""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from build import NOW_MS, Spec, boards, cluster, policy
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.act.contract import AuthorityLostError, Site
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.act.undo import undo_all
from autoscaler.model.cluster import Budget
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import Snapshot
from tests import audit_law
from tests.model_server import ModelServer, ModelWorkload
from tests.played_leader import CrashError, Process

pytestmark = pytest.mark.timeout(300)
MINUTE_MS = 60_000
COOLDOWN_S = 3600
RULES = policy(
    modes={"default": "apply"},
    guards={"quietPeriod": "0s", "cooldown": f"{COOLDOWN_S}s"},
    budgets={"podsPerWorkload": 1.0},
)
ACTIVE = {"big": 0.3, "set": 0.2, "many": 0.05}
"""Mean activity of the first board of each workload; all others rest."""
CRASH_SITES = [
    *(Site.DRY_RUN, Site.LEDGER_INTENT, Site.CHANGE, Site.LEDGER_OUTCOME, Site.DISOWN, Site.DELETION_COST)
]


class Histories(RuleBasedStateMachine):
    policy = RULES

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW_MS
        self.server = ModelServer(self.now)
        for name, count, replicas, plural in (
            ("big", 4, 1, "deployments"),
            ("set", 2, 1, "statefulsets"),
            ("many", 1, 3, "deployments"),
        ):
            item = ModelWorkload(
                name, f"uid-{name}", count, replicas, plural, born_ms=NOW_MS - 60 * 24 * 60 * MINUTE_MS
            )
            self.server.workloads[name] = item
        self.owners = {name: (one.boards, one.replicas) for name, one in self.server.workloads.items()}
        self.blind: set[str] = set()
        self.kept: int | None = None
        self.zombies: list[Process] = []
        self.term = 0
        self.runner = asyncio.Runner()
        self.leader = self.new_leader()

    def now(self) -> int:
        return self.now_ms

    def teardown(self) -> None:
        try:
            self.undo_everything()
            self.the_law_holds()
        finally:
            self.runner.close()

    def new_leader(self) -> Process:
        self.term += 1
        process = Process(self, self.term)
        self.server.agent = process.name
        self.server.lease_taken(process.name)
        return process

    def snapshot(self, ledger: ConfigMapLedger) -> Snapshot:
        """What the watches would show now."""
        specs = [self.spec(item) for item in self.server.workloads.values()]
        seen = cluster(*specs, budgets=tuple(self.budget()))
        return msgspec.structs.replace(seen, taken_ms=self.now_ms, acts=ledger.past_acts())

    def budget(self) -> Iterator[Budget]:
        """A disruption budget of `many`, while there is one."""
        if self.kept is not None:
            healthy = self.server.workloads["many"].replicas
            yield Budget(
                "team",
                "keep",
                LabelSelector({"app": "many"}),
                minimum=str(self.kept),
                allowed=max(0, healthy - self.kept),
                current_healthy=healthy,
                desired_healthy=self.kept,
                expected_pods=healthy,
            )

    def spec(self, item: ModelWorkload) -> Spec:
        board = boards(ACTIVE[item.name], *([0.0] * (item.boards - 1)))
        kind = "Deployment" if item.plural == "deployments" else "StatefulSet"
        stuck = {} if item.healthy else {"phase": "Pending", "ready": False, "unschedulable": "no room"}
        for index in range(item.replicas):
            name = f"{item.name}-{index}"
            metadata = {"name": name, "namespace": "team", "uid": f"uid-team-{name}", "annotations": {}}
            self.server.pods.setdefault(
                name, {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": {}}
            )
        return Spec(
            name=item.name,
            kind=kind,
            gpus=item.boards,
            seen=tuple(None if item.name in self.blind else board for _ in range(item.replicas)),
            labels={"gpu-autoscaler.io/role": "serving"} if item.name == "many" else {},
            age_ms=NOW_MS - item.born_ms,
            pod=stuck,
            workload={"uid": item.uid, "resource_version": str(item.version)},
        )

    def turn(self, process: Process) -> None:
        self.server.agent = process.name
        self.runner.run(asyncio.wait_for(process.turn(), 20))

    @rule(minutes=st.integers(1, 90))
    def time_passes_and_the_leader_works(self, minutes: int) -> None:
        self.now_ms += minutes * MINUTE_MS
        self.server.lease_taken(self.leader.name)
        self.turn(self.leader)

    @rule(
        site=st.sampled_from(CRASH_SITES),
        when=st.sampled_from(["before", "after"]),
        count=st.integers(1, 3),
        minutes=st.integers(1, 90),
    )
    def the_leader_is_killed_at_a_request(self, site: Site, when: str, count: int, minutes: int) -> None:
        self.leader.crash = (site, when, count)
        self.now_ms += minutes * MINUTE_MS
        self.server.lease_taken(self.leader.name)
        try:
            self.turn(self.leader)
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

    @precondition(lambda self: self.zombies)
    @rule()
    def a_former_leader_wakes_and_works_on(self) -> None:
        zombie = self.zombies.pop()
        zombie.ours = True
        try:
            self.turn(zombie)
        except AuthorityLostError:
            return
        finally:
            self.server.agent = self.leader.name

    @rule(answers=st.integers(1, 2))
    def answers_are_lost(self, answers: int) -> None:
        self.server.lose_answers = answers
        self.now_ms += 5 * MINUTE_MS
        self.server.lease_taken(self.leader.name)
        self.turn(self.leader)
        self.server.lose_answers = 0

    @rule(name=st.sampled_from(sorted(ACTIVE)), count=st.integers(1, 4), replicas=st.integers(1, 4))
    def an_owner_applies(self, name: str, count: int, replicas: int) -> None:
        self.owners[name] = (
            self.as_told_from_ours(name, "template", count),
            self.as_told_from_ours(name, "scale", replicas),
        )
        self.server.owner_sets(name, boards=count, replicas=replicas)

    def as_told_from_ours(self, name: str, lever: str, value: int) -> int:
        """What putting back goes to: an owner who states the very value that we had set cannot be told from us."""
        ledger = ConfigMapLedger(namespace="own", now_ms=self.now, guards=lambda: RULES.guards, shards=2)
        self.runner.run(ledger.load(self.server))
        entry = ledger.entries.get(self.server.workloads[name].uid)
        ours = [one for one in entry.changes if one.lever == lever and one.current == value] if entry else []
        return ours[0].original if ours else value

    @rule(name=st.sampled_from(sorted(ACTIVE)))
    def an_owner_applies_what_he_had(self, name: str) -> None:
        count, replicas = self.owners[name]
        self.server.owner_sets(name, boards=count, replicas=replicas)

    @rule(name=st.sampled_from(sorted(ACTIVE)))
    def an_owner_makes_it_anew(self, name: str) -> None:
        self.server.replace(name)
        item = self.server.workloads[name]
        self.owners[name] = (item.boards, item.replicas)

    @rule(name=st.sampled_from(sorted(ACTIVE)), healthy=st.booleans())
    def new_pods_fail_or_heal(self, name: str, healthy: bool) -> None:
        self.server.workloads[name].healthy = healthy

    @rule(name=st.sampled_from(sorted(ACTIVE)))
    def monitoring_of_one_goes_blind_or_sees_again(self, name: str) -> None:
        self.blind ^= {name}

    @rule(kept=st.none() | st.integers(0, 3))
    def a_disruption_budget_comes_or_goes(self, kept: int | None) -> None:
        self.kept = kept

    @rule()
    def a_person_puts_everything_back(self) -> None:
        self.undo_everything()

    def undo_everything(self) -> None:
        """After it, every workload holds what its owner had there, but for an act that may still be under way."""
        self.now_ms += 2 * MINUTE_MS
        self.server.lease_taken(self.leader.name)
        self.turn(self.leader)
        self.now_ms += 2 * MINUTE_MS
        self.server.lease_taken(self.leader.name)

        async def undo() -> None:
            ledger = self.leader.ledger
            await ledger.load(self.server)
            await undo_all(ledger, Executor(ledger, now_ms=self.now, acts_per_minute=1e9), self.leader.writer)

        self.server.agent = self.leader.name
        self.runner.run(undo())
        for name, item in self.server.workloads.items():
            assert (item.boards, item.replicas) == self.owners[name], name
            assert item.ours == []

    def the_law_holds(self) -> None:
        # A former leader that does not know it may rehearse, lose its swap, and take back marks of ours (a list of
        # steps); nothing else of it may be accepted. Its lease would keep it from all of that, which is not played here.
        history = [
            one
            for one in audit_law.writes_of(self.server.events)
            if one.agent not in self.woken()
            or (one.accepted and not one.dry_run and not isinstance(one.body, list))
        ]
        assert audit_law.violations(history, cooldown_s=COOLDOWN_S) == []

    def woken(self) -> set[str]:
        return {f"process-{term}" for term in range(1, self.term) if f"process-{term}" != self.leader.name}

    @invariant()
    def an_original_is_what_the_owner_had(self) -> None:
        for entry in self.leader.ledger.entries.values():
            item = self.server.workloads[entry.ref.name]
            if item.uid != entry.uid:
                continue
            for change in entry.changes:
                live, owned = (
                    (item.replicas, self.owners[item.name][1])
                    if change.lever == "scale"
                    else (item.boards, self.owners[item.name][0])
                )
                if live == change.current and live != owned:
                    assert change.original == owned


Histories.TestCase.settings = settings(
    max_examples=max(20, settings().max_examples // 4),
    stateful_step_count=20,
    deadline=None,
    # Explaining traces every line of the planner, which takes minutes.
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
TestHistories = Histories.TestCase
