"""Acting for a command: judged again on the world of that moment, remembered, bounded in time, and put back."""

import asyncio
import copy
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from service_worlds import (
    GPU,
    ScriptedApi,
    ScriptedStore,
    World,
    _status,
    dcgm_series,
    deployment_objects,
    running,
)

from autoscaler.act.contract import Outcome
from autoscaler.act.undo import Restored
from autoscaler.cli import main
from autoscaler.decide import plan as decide_plan
from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import Action, Plan, encode_plan
from autoscaler.model.policy import Policy, policy_from_dict
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import decode_snapshot
from autoscaler.service import acting_once, exit_codes
from autoscaler.service.acting_once import Desk, open_desk
from autoscaler.service.clock import SystemClock
from autoscaler.service.faults import ServiceError
from autoscaler.service.once import read_live
from autoscaler.service.settings import load_settings

NAMESPACE = "/api/v1/namespaces/gpu-autoscaler"
CONFIG_MAPS = f"{NAMESPACE}/configmaps"
CONTROL = f"{CONFIG_MAPS}/gpu-autoscaler-control"
WEB = "/apis/apps/v1/namespaces/team/deployments/web"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-autoscaler/leases/gpu-autoscaler"


@dataclass
class WritableApi(ScriptedApi):
    """The scripted server, which also keeps ConfigMaps and lets the one Deployment be changed."""

    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    before: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """Called before the answer to a request, by verb and path; what it returns is the answer, where it is one."""

    @property
    def deployment(self) -> dict[str, Any]:
        return self.objects["Deployment"][0]

    def boards(self) -> int:
        (amount,) = {
            amounts[GPU] for amounts in _container(self.deployment)["resources"].values() if GPU in amounts
        }
        return int(amount)

    def set_boards(self, boards: int, *, by: str = "") -> None:
        """Somebody changes the template; `by` leaves a name in managedFields."""
        if by:
            self.deployment["metadata"].setdefault("managedFields", []).append({"manager": by})
        for amounts in _container(self.deployment)["resources"].values():
            amounts[GPU] = str(boards)
        self.touch()

    def touch(self) -> None:
        version = self.deployment["metadata"]["resourceVersion"]
        self.deployment["metadata"]["resourceVersion"] = str(int(version) + 1)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        dry = "dry " if request.query.get("dryRun") else ""
        hook = self.before.get(f"{dry}{request.method} {request.path}")
        answer = hook() if hook is not None else None
        if isinstance(answer, web.Response):
            return answer
        if request.path.startswith(CONFIG_MAPS):
            return await self._config_map(request)
        if request.path == WEB:
            return await self._web(request, dry=bool(dry))
        if request.path in self.kept:
            return web.json_response(self.kept[request.path])
        return await super()._answer(request)

    async def _config_map(self, request: web.Request) -> web.Response:
        found = self.kept.get(request.path)
        if request.method == "GET":
            return web.json_response(found) if found else _status(404, "NotFound", "no such ConfigMap")
        body = await request.json()
        path = request.path if found else f"{CONFIG_MAPS}/{body['metadata']['name']}"
        now = self.kept.get(path, {}).get("metadata", {}).get("resourceVersion", "")
        if body["metadata"].get("resourceVersion", "") != now:
            return _status(409, "Conflict", "the object has been modified")
        if request.method == "PATCH" and found:
            merged = {**found["data"], **body["data"]}
            body = {**found, "data": {key: text for key, text in merged.items() if text is not None}}
        body["metadata"]["resourceVersion"] = str(int(now or 0) + 1)
        self.kept[path] = body
        return web.json_response(body)

    async def _web(self, request: web.Request, *, dry: bool) -> web.Response:
        if request.method == "GET":
            return web.json_response(self.deployment)
        body = await request.json()
        if isinstance(body, list):
            self.deployment["metadata"]["managedFields"] = []
            self.touch()
            return web.json_response(self.deployment)
        if body["metadata"]["resourceVersion"] != self.deployment["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        resources = _container(body)["resources"]
        changed = copy.deepcopy(self.deployment)
        for part, amounts in resources.items():
            _container(changed)["resources"][part] |= amounts
        if not dry:
            self.writes.append(f"{self.boards()} -> {_container(changed)['resources']['limits'][GPU]}")
            self.objects["Deployment"][0] = changed
            self.touch()
        return web.json_response(self.objects["Deployment"][0] if not dry else changed)


def _container(item: dict[str, Any]) -> dict[str, Any]:
    (found,) = item["spec"]["template"]["spec"]["containers"]
    return dict(found)


class Impatient(SystemClock):
    """Waits for nothing: it puts the server's clock forward. It can be put forward itself."""

    ahead_s = 0.0

    def __init__(self, api: ScriptedApi) -> None:
        self._api = api

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        self._api.ahead_s += seconds
        await asyncio.sleep(0)


@dataclass
class Scene:
    """A cluster whose one Deployment should shrink from two boards to one, and a person who acts on it."""

    api: WritableApi
    world: World
    clock: Impatient
    policy: Policy = field(default_factory=Policy)

    @asynccontextmanager
    async def desk(self) -> AsyncIterator[Desk]:
        settings = load_settings(self.world.environ)
        async with open_desk(
            settings, self.world.environ, self.policy, holder="me@here", clock=self.clock
        ) as opened:
            yield opened

    async def plan(self) -> Plan:
        """What a person sees before anything was done."""
        settings = load_settings(self.world.environ)
        taken = await read_live(settings, self.world.environ, Policy(), show=lambda _: None)
        return decide_plan(taken, Policy(), taken.taken_ms)

    async def apply(self, *actions: Action) -> list[Outcome]:
        async with self.desk() as desk:
            return await acting_once.apply_actions(
                desk,
                actions or (await self.plan()).actions,
                progress=lambda: nullcontext(lambda _: None),
                told=lambda _action, _outcome: None,
            )

    async def undo(self) -> list[Restored]:
        async with self.desk() as desk:
            return await acting_once.undo_entries(desk, lambda _: True, told=lambda _: None)

    def entries(self) -> list[Entry]:
        texts = [text for item in self.api.kept.values() for text in item.get("data", {}).values()]
        return [msgspec.json.decode(text, type=Entry) for text in texts if text.startswith('{"ref"')]

    def records(self) -> list[Record]:
        return [record for entry in self.entries() for record in entry.records]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    api = WritableApi(objects=deployment_objects())
    async with running(api, ScriptedStore(series=dcgm_series(40.0, 0.0)), tmp_path) as world:
        yield Scene(api, world, Impatient(api))


def ends(outcomes: list[Outcome]) -> list[tuple[str, Reason | None]]:
    return [(one.kind, one.reason) for one in outcomes]


async def test_an_approved_action_is_done_once_and_written_down_as_a_persons(scene: Scene) -> None:
    assert ends(await scene.apply()) == [("done", None)]

    (record,) = scene.records()
    assert scene.api.writes == ["2 -> 1"]
    assert (record.actor, record.state, record.term) == ("apply", "acted", 0)
    assert [(one.original, one.current) for one in scene.entries()[0].changes] == [(2, 1)]


async def test_a_person_approves_what_the_mode_only_recommends_or_observes(scene: Scene) -> None:
    actions = (await scene.plan()).actions
    assert [one.held_by for one in actions] == [(Reason.MODE_RECOMMEND,)]

    scene.policy = policy_from_dict({"modes": {"default": "observe", "rightSize": "observe"}})

    assert ends(await scene.apply(*actions)) == [("done", None)]


async def test_no_approval_stands_for_a_spent_budget(scene: Scene) -> None:
    scene.policy = policy_from_dict({"budgets": {"inFlight": 0}})

    assert ends(await scene.apply()) == [("refused", Reason.BUDGET_SPENT)]
    assert scene.api.writes == []
    assert scene.entries() == []


async def test_what_was_done_lately_is_remembered_from_the_ledger(scene: Scene) -> None:
    await scene.apply()
    scene.api.set_boards(2)

    assert ends(await scene.apply()) == [("refused", Reason.COOLDOWN)]
    assert scene.api.writes == ["2 -> 1"]


async def test_a_pause_holds_a_person_too(scene: Scene) -> None:
    async with scene.desk() as desk:
        words = await acting_once.pause(desk, because="an incident")

    (outcome,) = await scene.apply()

    assert (outcome.kind, outcome.reason, outcome.detail) == ("refused", Reason.PAUSED, words)
    assert words.startswith("paused by me@here at 20")
    assert words.endswith(": an incident")
    assert scene.api.writes == []


async def test_a_pause_while_the_cluster_is_read_still_holds(scene: Scene) -> None:
    actions = (await scene.plan()).actions
    paused = {"metadata": {"resourceVersion": "1"}, "data": {"paused": '{"by": "you", "at": "now"}'}}
    scene.api.before["GET /api/v1/pods"] = lambda: scene.api.kept.update({CONTROL: paused})

    assert ends(await scene.apply(*actions)) == [("refused", Reason.PAUSED)]
    assert scene.api.writes == []


async def test_an_entry_that_cannot_be_read_stops_everything(scene: Scene) -> None:
    shard = {"metadata": {"resourceVersion": "1"}, "data": {"uid-other": '{"version": 99}'}}
    scene.api.kept[f"{CONFIG_MAPS}/gpu-autoscaler-ledger-3"] = shard

    assert ends(await scene.apply()) == [("refused", Reason.LEDGER_UNREADABLE)]
    assert scene.api.writes == []


async def test_a_change_that_is_no_longer_planned_is_refused_with_the_guards_words(scene: Scene) -> None:
    actions = (await scene.plan()).actions
    scene.api.deployment["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}

    (outcome,) = await scene.apply(*actions)

    assert (outcome.kind, outcome.reason) == ("refused", Reason.PROTECTED)
    assert scene.api.writes == []


@pytest.mark.parametrize(
    "other",
    [{"uid": "uid-of-another-cluster"}, {"target": {"name": "nobody"}}],
    ids=["another object of the name", "no object of the name"],
)
async def test_a_plan_of_another_cluster_meets_nobody(scene: Scene, other: dict[str, Any]) -> None:
    (action,) = (await scene.plan()).actions
    foreign = msgspec.structs.replace(action, uid=other.get("uid", action.uid))
    if "target" in other:
        foreign = msgspec.structs.replace(
            foreign, target=msgspec.structs.replace(action.target, **other["target"])
        )
        scene.api.absent.add("Job")

    (outcome,) = await scene.apply(foreign)

    assert outcome.kind == "gone"
    assert scene.api.writes == []


async def test_a_forged_size_is_not_what_the_plan_says(scene: Scene) -> None:
    (action,) = (await scene.plan()).actions

    (outcome,) = await scene.apply(msgspec.structs.replace(action, after=0))

    assert outcome.kind == "conflict"
    assert scene.api.writes == []


async def test_a_cluster_that_cannot_be_read_is_a_refusal_of_each_action(scene: Scene) -> None:
    actions = (await scene.plan()).actions
    scene.api.denied.add("Pod")

    (outcome,) = await scene.apply(*actions)

    assert outcome.kind == "refused"
    assert "Pod is forbidden" in outcome.detail
    assert scene.api.writes == []


async def test_nothing_is_sent_once_the_window_of_an_act_is_over(scene: Scene) -> None:
    actions = (await scene.plan()).actions
    puts_forward = lambda: setattr(scene.clock, "ahead_s", acting_once.WINDOW_S)  # noqa: E731
    scene.api.before[f"POST {CONFIG_MAPS}"] = puts_forward

    (outcome,) = await scene.apply(*actions)

    assert outcome.kind == "unknown"
    assert scene.api.writes == []
    assert [record.state for record in scene.records()] == ["intended"]


async def test_the_window_begins_when_the_guards_have_looked(scene: Scene) -> None:
    actions = (await scene.plan()).actions
    scene.api.before["GET /api/v1/pods"] = lambda: setattr(scene.clock, "ahead_s", 600.0)

    assert ends(await scene.apply(*actions)) == [("done", None)]


async def test_undo_puts_back_and_leaves_the_workload_alone(scene: Scene) -> None:
    await scene.apply()

    assert ends([one.outcome for one in await scene.undo()]) == [("done", None)]

    (entry,) = scene.entries()
    assert scene.api.boards() == 2
    assert entry.changes == ()
    assert [(one.actor, one.state) for one in entry.records] == [("apply", "undone"), ("undo", "verified")]
    assert entry.why == "put back by a person"
    assert await scene.undo() == []


async def test_what_is_no_longer_ours_is_let_go(scene: Scene) -> None:
    await scene.apply()
    scene.api.set_boards(4)

    assert ends([one.outcome for one in await scene.undo()]) == [("refused", Reason.SUPERSEDED)]
    assert scene.api.boards() == 4
    assert scene.entries()[0].changes == ()


async def test_undo_looks_again_while_a_rollout_writes_the_status(scene: Scene) -> None:
    await scene.apply()
    scene.api.writes.clear()
    left = [1, 1]

    def rolled_out_further() -> web.Response | None:
        if not left:
            return None
        left.pop()
        return _status(409, "Conflict", "the object has been modified")

    scene.api.before[f"PATCH {WEB}"] = rolled_out_further

    assert ends([one.outcome for one in await scene.undo()]) == [("done", None)]
    assert scene.api.writes == ["1 -> 2"]


async def test_undo_gives_up_on_a_conflict_that_does_not_end(scene: Scene) -> None:
    await scene.apply()
    scene.api.before[f"dry PATCH {WEB}"] = lambda: _status(409, "Conflict", "modified")

    assert [one.outcome.kind for one in await scene.undo()] == ["conflict"]
    assert [(one.original, one.current) for one in scene.entries()[0].changes] == [(2, 1)]


async def half_done(scene: Scene, *, carried_out: bool, ago_ms: int) -> None:
    """An act whose command died right after it had written it down, or had sent it."""
    scene.api.before[f"PATCH {WEB}"] = lambda: _status(504, "Timeout", "no answer")
    assert ends(await scene.apply()) == [("unknown", None)]
    scene.api.before.clear()
    if carried_out:
        scene.api.set_boards(1, by="gpu-autoscaler")
    for item in scene.api.kept.values():
        for uid, text in item["data"].items():
            entry = msgspec.json.decode(text, type=Entry)
            (record,) = entry.records
            aged = msgspec.structs.replace(record, settle_ms=record.settle_ms - ago_ms)
            item["data"][uid] = msgspec.json.encode(msgspec.structs.replace(entry, records=(aged,))).decode()


async def test_undo_does_not_cross_an_act_under_way(scene: Scene) -> None:
    await half_done(scene, carried_out=True, ago_ms=0)

    (restored,) = await scene.undo()

    assert (restored.outcome.kind, restored.outcome.reason) == ("refused", Reason.COOLDOWN)
    assert "ask again in" in restored.outcome.detail
    assert scene.api.boards() == 1


async def test_undo_puts_back_what_a_crash_left_half_done(scene: Scene) -> None:
    await half_done(scene, carried_out=True, ago_ms=60_000)

    assert ends([one.outcome for one in await scene.undo()]) == [("done", None)]
    assert scene.api.boards() == 2


async def test_what_never_happened_needs_no_putting_back(scene: Scene) -> None:
    await half_done(scene, carried_out=False, ago_ms=60_000)

    assert await scene.undo() == []
    assert [record.state for record in scene.records()] == ["dropped"]
    assert scene.api.writes == []


async def test_undo_without_the_right_says_so_and_keeps_the_value_as_ours(scene: Scene) -> None:
    await scene.apply()
    scene.api.before[f"dry PATCH {WEB}"] = lambda: _status(403, "Forbidden", "may not patch deployments")

    assert ends([one.outcome for one in await scene.undo()]) == [("refused", Reason.FORBIDDEN)]
    assert len(scene.entries()[0].changes) == 1


async def test_undo_that_cannot_write_the_ledger_sends_nothing(scene: Scene) -> None:
    await scene.apply()
    scene.api.writes.clear()
    (shard,) = [path for path, item in scene.api.kept.items() if item["data"]]
    scene.api.before[f"PUT {shard}"] = lambda: _status(409, "Conflict", "the object has been modified")

    assert [one.outcome.kind for one in await scene.undo()] == ["conflict"]
    assert scene.api.writes == []


async def test_undo_ends_with_its_window(scene: Scene) -> None:
    await scene.apply()
    scene.api.writes.clear()
    scene.api.before[f"dry PATCH {WEB}"] = lambda: setattr(scene.clock, "ahead_s", acting_once.WINDOW_S)

    (restored,) = await scene.undo()

    assert restored.outcome.kind == "unknown"
    assert scene.api.writes == []


async def test_what_a_crash_left_open_and_cannot_be_looked_at_stays_open(scene: Scene) -> None:
    await half_done(scene, carried_out=True, ago_ms=60_000)
    scene.api.before[f"GET {WEB}"] = lambda: _status(403, "Forbidden", "may not get deployments")

    (restored,) = await scene.undo()

    assert restored.outcome.kind == "refused"
    assert "may not get deployments" in restored.outcome.detail
    assert [record.state for record in scene.records()] == ["intended"]


def lease(term: str, renewed: str, holder: str = "gpu-autoscaler-0") -> dict[str, Any]:
    return {
        "metadata": {"annotations": {"gpu-autoscaler.io/term": term}, "resourceVersion": "1"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed},
    }


@pytest.mark.parametrize(
    ("held", "leader"),
    [
        (None, ""),
        (lease("7", "2999-01-01T00:00:00.000000Z"), "gpu-autoscaler-0"),
        (lease("7", "2026-01-01T00:00:00.000000Z"), ""),
        (lease("7", "soon"), ""),
        (lease("8", "2999-01-01T00:00:00.000000Z"), ""),
        (lease("7", "2999-01-01T00:00:00.000000Z", holder=""), ""),
    ],
    ids=["no lease", "it acts", "it died", "no time", "it never took the ledger", "released"],
)
async def test_who_verifies_holds_a_living_lease_and_the_ledger(
    scene: Scene, held: dict[str, Any] | None, leader: str
) -> None:
    shard = {"metadata": {"resourceVersion": "1", "annotations": {"gpu-autoscaler.io/ledger-term": "7"}}}
    scene.api.kept[f"{CONFIG_MAPS}/gpu-autoscaler-ledger-0"] = {**shard, "data": {}}
    if held is not None:
        scene.api.kept[LEASE] = held

    async with scene.desk() as desk:
        assert await acting_once.acting_leader(desk) == leader


async def test_pausing_twice_keeps_the_first_and_resuming_twice_is_no_fault(scene: Scene) -> None:
    async with scene.desk() as desk:
        first = await acting_once.pause(desk, because="one")
        second = await acting_once.pause(desk, because="two")
        resumed = [await acting_once.resume(desk), await acting_once.resume(desk)]

    assert first == second
    assert resumed == [True, False]


async def test_a_namespace_that_does_not_exist_is_named_with_its_setting(scene: Scene) -> None:
    absent = _status(404, "NotFound", 'namespaces "gpu-autoscaler" not found')
    scene.api.before[f"POST {CONFIG_MAPS}"] = lambda: absent

    with pytest.raises(ServiceError, match="AUTOSCALER_NAMESPACE is 'gpu-autoscaler'"):
        async with scene.desk() as desk:
            await acting_once.pause(desk, because="")


async def command(scene: Scene, patch: pytest.MonkeyPatch, *arguments: str, stdin: str | None = None) -> int:
    for name, value in scene.world.environ.items():
        patch.setenv(name, value)
    if stdin is not None:
        text = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        patch.setattr("sys.stdin", text)
    return await asyncio.to_thread(main, list(arguments))


async def test_the_commands_work_one_after_the_other(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.yaml"
    assert await command(scene, monkeypatch, "plan", "-o", "yaml") == exit_codes.OK
    path.write_text(capsys.readouterr().out)

    assert await command(scene, monkeypatch, "apply", "-f", str(path), "--yes") == exit_codes.OK
    out, err = capsys.readouterr()
    assert out == "done       Deployment team/web  boards per pod 2 -> 1\n"
    assert "no service leads in mode apply here" in err

    assert await command(scene, monkeypatch, "ledger", "team/web", "-o", "json") == exit_codes.OK
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert [(one["original"], one["current"]) for one in entry["changes"]] == [(2, 1)]

    assert await command(scene, monkeypatch, "undo", "team/web", "--yes") == exit_codes.OK
    assert capsys.readouterr().out == "done       Deployment team/web  boards per pod 1 -> 2\n"

    assert await command(scene, monkeypatch, "undo", "--all", "--yes") == exit_codes.OK
    assert "no value of ours is there to put back" in capsys.readouterr().err

    assert await command(scene, monkeypatch, "undo", "team/nobody", "--yes") == exit_codes.NOT_FOUND
    assert "nothing was ever done to team/nobody" in capsys.readouterr().err

    assert await command(scene, monkeypatch, "pause", "--because", "lunch") == exit_codes.OK
    assert capsys.readouterr().out.endswith(": lunch\n")
    assert await command(scene, monkeypatch, "resume") == exit_codes.OK
    assert await command(scene, monkeypatch, "resume") == exit_codes.OK
    assert capsys.readouterr().out == "resumed\nit was not paused\n"
    assert scene.api.writes == ["2 -> 1", "1 -> 2"]


async def test_a_snapshot_goes_by_pipe(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert await command(scene, monkeypatch, "snapshot", "-o", "-") == exit_codes.OK
    assert [row.ref.name for row in decode_snapshot(capsysbinary.readouterr().out).workloads] == ["web"]


async def test_a_plan_comes_by_pipe_and_its_end_by_json(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped = encode_plan(await scene.plan()).decode()
    arguments = ("apply", "-f", "-", "--yes", "-o", "json")

    assert await command(scene, monkeypatch, *arguments, stdin=piped) == exit_codes.OK
    (result,) = json.loads(capsys.readouterr().out)
    assert (result["result"], result["change"]) == ("done", "boards per pod 2 -> 1")

    assert await command(scene, monkeypatch, *arguments, stdin=piped) == exit_codes.FAILED
    (result,) = json.loads(capsys.readouterr().out)
    assert result["result"] == "conflict"


@pytest.mark.parametrize(
    ("minutes", "told"), [(61, "ago, over 1h"), (-2, "in the future by the API server's clock")]
)
async def test_an_old_plan_needs_a_second_word(
    scene: Scene,
    minutes: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = await scene.plan()
    aged = msgspec.structs.replace(made, taken_ms=made.taken_ms - minutes * 60_000)
    path = tmp_path / "plan.json"
    path.write_bytes(encode_plan(aged))

    assert await command(scene, monkeypatch, "apply", "-f", str(path), "--yes") == exit_codes.FAILED
    assert told in capsys.readouterr().err
    assert scene.api.writes == []

    arguments = ("apply", "-f", str(path), "--yes", "--stale-ok")
    assert await command(scene, monkeypatch, *arguments) == exit_codes.OK
    assert scene.api.writes == ["2 -> 1"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("", 2), ("yess\n", 2)])
async def test_a_person_at_a_terminal_is_asked(
    scene: Scene,
    answer: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(encode_plan(await scene.plan()))
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)

    assert await command(scene, monkeypatch, "apply", "-f", str(path)) == code

    err = capsys.readouterr().err
    assert "Deployment team/web: boards per pod 2 -> 1; needs at most" in err
    assert "apply 1 change? [y/N]" in err
    assert scene.api.writes == (["2 -> 1"] if code == 0 else [])


async def test_a_plan_without_actions_asks_nobody_and_does_nothing(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(encode_plan(msgspec.structs.replace(await scene.plan(), actions=())))

    assert await command(scene, monkeypatch, "apply", "-f", str(path), "-o", "json") == exit_codes.OK

    out, err = capsys.readouterr()
    assert json.loads(out) == []
    assert "the plan has no actions: nothing to do" in err


async def test_undo_of_everything_is_not_all_done_while_an_entry_cannot_be_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await scene.apply()
    shard = {"metadata": {"resourceVersion": "1"}, "data": {"uid-other": '{"version": 99}'}}
    scene.api.kept[f"{CONFIG_MAPS}/gpu-autoscaler-ledger-3"] = shard

    assert await command(scene, monkeypatch, "undo", "--all", "--yes") == exit_codes.FAILED

    out, err = capsys.readouterr()
    assert out.startswith("done ")
    assert "uid-other has a form that this version does not know: it is left as it is" in err


async def test_nobody_is_asked_about_an_undo_without_a_terminal(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await scene.apply()

    assert await command(scene, monkeypatch, "undo", "--all", stdin="yes\n") == exit_codes.USAGE
    assert "stdin is no terminal" in capsys.readouterr().err
    assert scene.api.boards() == 1


async def test_the_ledger_of_a_workload_that_nothing_was_done_to_is_not_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command(scene, monkeypatch, "ledger", "team/web") == exit_codes.NOT_FOUND
    assert "nothing was ever done to team/web" in capsys.readouterr().err

    assert await command(scene, monkeypatch, "ledger") == exit_codes.OK
    assert "none" in capsys.readouterr().out


async def test_a_ledger_that_may_not_be_read_is_one_sentence(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = _status(403, "Forbidden", "configmaps is forbidden")
    scene.api.before[f"GET {CONFIG_MAPS}/gpu-autoscaler-ledger-0"] = lambda: denied

    assert await command(scene, monkeypatch, "ledger") == exit_codes.FAILED
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "403 Forbidden: configmaps is forbidden" in err
