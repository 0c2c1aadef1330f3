"""Every act ends in one outcome and one state of the ledger, whatever the other side answers."""

import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import web

from autoscaler.act.aftercare import DISOWN_TRIES
from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.ledger import LedgerConflictError, LedgerUnreadableError
from autoscaler.act.requests import LOWERED_COST
from autoscaler.act.transitions import InHandError
from autoscaler.model.plan import PodRef, Refusal
from autoscaler.model.reasons import Reason

OVERLOAD = {"details": {"retryAfterSeconds": 7}}
BUDGET = {"details": {"causes": [{"reason": "DisruptionBudget", "message": "pdb a needs 2"}]}}
WRONG_UID = {"details": {"causes": [{"field": "metadata.uid"}]}}


def stage(scene: Any, words: Any, lever: str) -> str:
    """Puts what an action needs there; the act's own request, as the server sees it."""
    scene.hold(words.deployment, words.workload())
    if lever == "template":
        return f"PATCH {words.deployment}"
    if lever == "scale":
        return f"PATCH {words.deployment}/scale"
    scene.hold(f"{words.pods}victim", words.pod("victim"))
    scene.hold(f"{words.pods}waiting", words.pod("waiting", node="", phase="Pending"))
    return f"POST {words.pods}victim/eviction"


@pytest.mark.parametrize("lever", ["template", "scale", "evict"])
async def test_an_act_is_rehearsed_written_down_sent_and_written_down_again(
    scene: Any, words: Any, lever: str
) -> None:
    sent = stage(scene, words, lever)
    outcome = await scene.execute(words.act(lever))

    assert (outcome.kind, outcome.record.state) == ("done", "acted")
    assert scene.notebook.states == ["intended", "acted"]
    assert scene.api.sent.count(f"dry {sent}") == 1
    assert scene.api.sent.count(sent) == 1


@pytest.mark.parametrize(
    ("kind", "path", "spec"),
    [
        ("Deployment", "deployment", {}),
        ("StatefulSet", "stateful_set", {}),
        ("CronJob", "cron_job", {"jobTemplate": {}}),
    ],
)
async def test_a_template_patch_changes_the_one_amount_and_leaves_no_trace_of_ours(
    scene: Any, words: Any, kind: str, path: str, spec: dict[str, Any]
) -> None:
    where = getattr(words, path)
    item = words.workload(
        words.container(limits={words.gpu: "2", "cpu": "4"}, requests={"cpu": "1"}),
        words.container("sidecar", limits={words.gpu: "2"}),
    )
    if spec:
        item["spec"] = {"jobTemplate": {"spec": item["spec"]}}
    scene.hold(where, item)
    outcome = await scene.execute(words.act(kind=kind))
    found = scene.api.objects[where]
    template = (found["spec"]["jobTemplate"]["spec"] if spec else found["spec"])["template"]

    assert outcome.kind == "done"
    assert template["spec"]["containers"] == [
        words.container(limits={words.gpu: "1", "cpu": "4"}, requests={"cpu": "1"}),
        words.container("sidecar", limits={words.gpu: "2"}),
    ]
    assert found["metadata"]["managedFields"] == [{"manager": "owner"}]
    assert scene.api.headers[f"PATCH {where}"] == {
        "type": "application/strategic-merge-patch+json",
        "manager": "gpu-autoscaler",
    }
    assert scene.api.bodies[f"PATCH {where}"] == scene.api.bodies[f"dry PATCH {where}"]


@pytest.mark.parametrize(
    ("lever", "fault", "expected"),
    [
        ("template", ((403, "Forbidden", "may not"), {}), ("refused", Reason.FORBIDDEN, "dropped")),
        ("template", ((404, "NotFound"), {}), ("gone", None, "gone")),
        ("template", ((409, "Conflict"), {}), ("conflict", None, "dropped")),
        ("template", ((422, "Invalid", "immutable"), {}), ("refused", Reason.NO_LEVER, "dropped")),
        ("template", ((422, "Invalid", "immutable"), WRONG_UID), ("gone", None, "gone")),
        ("template", ((429, "TooManyRequests"), OVERLOAD), ("refused", None, "dropped")),
        ("template", ((500, "InternalError"), {}), ("unknown", None, "intended")),
        ("template", ((504, "Timeout"), {}), ("unknown", None, "intended")),
        (
            "scale",
            ((409, "Conflict", "Precondition failed: UID in precondition: a, UID in object meta: b"), {}),
            ("gone", None, "gone"),
        ),
        ("scale", ((409, "Conflict", "the object has been modified"), {}), ("conflict", None, "dropped")),
        ("evict", ((403, "Forbidden", "may not"), {}), ("refused", Reason.FORBIDDEN, "dropped")),
        ("evict", ((404, "NotFound"), {}), ("gone", None, "gone")),
        (
            "evict",
            ((409, "Conflict", "the UID in the precondition (a) does not match the UID in record (b)"), {}),
            ("gone", None, "gone"),
        ),
        (
            "evict",
            ((429, "TooManyRequests"), BUDGET),
            ("refused", Reason.DISRUPTION_BUDGET, "dropped"),
        ),
        ("evict", ((429, "TooManyRequests"), OVERLOAD), ("refused", None, "dropped")),
        (
            "evict",
            ((500, "", "This pod has more than one PodDisruptionBudget, which is not supported."), {}),
            ("refused", Reason.DISRUPTION_BUDGET, "dropped"),
        ),
        ("evict", ((500, "InternalError"), {}), ("unknown", None, "intended")),
    ],
)
async def test_each_refusal_of_an_act_has_one_outcome_and_one_end_in_the_ledger(
    scene: Any, words: Any, lever: str, fault: Any, expected: tuple[str, Reason | None, str]
) -> None:
    sent = stage(scene, words, lever)
    scene.api.fail(sent, *fault[0], **fault[1])
    outcome = await scene.execute(words.act(lever))

    assert (outcome.kind, outcome.reason, outcome.record.state) == expected
    assert scene.api.sent.count(sent) == 1
    assert outcome.retry_after_s == (7.0 if fault[1] is OVERLOAD else None)


@pytest.mark.parametrize("lever", ["template", "scale", "evict"])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ((403, "Forbidden", 'webhook "w" denied the request: no'), ("refused", Reason.FORBIDDEN)),
        ((404, "NotFound"), ("gone", None)),
        ((409, "Conflict"), ("conflict", None)),
        ((500, "InternalError"), ("refused", None)),
    ],
)
async def test_what_a_rehearsal_refuses_is_neither_written_down_nor_sent(
    scene: Any, words: Any, lever: str, fault: tuple[Any, ...], expected: tuple[str, Reason | None]
) -> None:
    sent = stage(scene, words, lever)
    scene.api.fail(f"dry {sent}", *fault)
    outcome = await scene.execute(words.act(lever))

    assert (outcome.kind, outcome.reason) == expected
    assert fault[-1] in outcome.detail
    assert scene.notebook.records == []
    assert scene.api.changes == []


async def test_a_budget_is_asked_before_anything_is_written_down(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "evict")
    scene.api.fail(f"dry {sent}", 429, "TooManyRequests", **BUDGET)
    outcome = await scene.execute(words.act("evict"))

    assert (outcome.reason, outcome.detail) == (Reason.DISRUPTION_BUDGET, "pdb a needs 2")
    assert scene.api.changes == []


@pytest.mark.parametrize("lever", ["template", "scale"])
async def test_an_admission_that_makes_another_value_of_it_owns_the_field(
    scene: Any, words: Any, lever: str
) -> None:
    sent = stage(scene, words, lever)

    async def unchanged(_: Any) -> Any:

        return web.json_response(words.workload())

    scene.api.faults[f"dry {sent}"] = unchanged
    outcome = await scene.execute(words.act(lever))

    assert (outcome.kind, outcome.reason) == ("refused", Reason.OTHER_OWNER)
    assert outcome.detail == "admission makes 2 of 1"
    assert scene.api.changes == []


@pytest.mark.parametrize("lever", ["template", "scale", "evict"])
@pytest.mark.parametrize("how", ["cut", "silence", "carried out in silence"])
async def test_an_act_without_an_answer_stays_intended(scene: Any, words: Any, lever: str, how: str) -> None:
    sent = stage(scene, words, lever)
    if how == "cut":
        scene.api.cut(sent)
    else:
        scene.api.fall_silent(sent, carry_out=how == "carried out in silence")
    outcome = await scene.execute(words.act(lever), writer=scene.new_writer(timeout_s=0.3))

    assert (outcome.kind, outcome.record.state) == ("unknown", "intended")
    assert scene.notebook.states == ["intended"]
    assert scene.api.sent.count(sent) == 1


@pytest.mark.parametrize("lever", ["template", "scale", "evict"])
async def test_nothing_is_sent_once_the_authority_is_lost_after_the_intent(
    scene: Any, words: Any, lever: str
) -> None:
    stage(scene, words, lever)
    scene.notebook.on_intend = lambda: setattr(scene.lease, "left_s", 0.0)
    with pytest.raises(AuthorityLostError):
        await scene.execute(words.act(lever))

    assert scene.notebook.states == ["intended"]
    assert scene.api.changes == []


async def test_without_authority_not_even_the_object_is_read(scene: Any, words: Any) -> None:
    stage(scene, words, "template")
    scene.lease.left_s = 0.0
    with pytest.raises(AuthorityLostError):
        await scene.execute(words.act())

    assert scene.api.sent == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InHandError("open"), ("refused", Reason.COOLDOWN)),
        (LedgerUnreadableError("form"), ("refused", Reason.LEDGER_UNREADABLE)),
        (LedgerConflictError("others"), ("conflict", None)),
    ],
)
@pytest.mark.parametrize("lever", ["template", "scale", "evict"])
async def test_nothing_is_sent_without_the_intent(
    scene: Any, words: Any, lever: str, error: Exception, expected: tuple[str, Reason | None]
) -> None:
    stage(scene, words, lever)
    scene.notebook.refuses = error
    outcome = await scene.execute(words.act(lever))

    assert (outcome.kind, outcome.reason) == expected
    assert scene.api.changes == []


@pytest.mark.parametrize("lever", ["template", "scale", "evict"])
async def test_an_accepted_act_that_cannot_be_written_down_is_never_called_refused(
    scene: Any, words: Any, lever: str
) -> None:
    stage(scene, words, lever)
    scene.notebook.broken = True
    outcome = await scene.execute(words.act(lever))

    assert (outcome.kind, outcome.record.state) == ("unknown", "intended")


async def test_an_accepted_change_that_cannot_be_followed_up_is_still_done(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "scale")
    scene.api.fail(f"UNPATCH {words.deployment}", 403, "Forbidden", "may not patch")
    outcome = await scene.execute(words.act("scale"))

    assert scene.api.sent.count(sent) == 1
    assert (outcome.kind, outcome.record.state) == ("done", "acted")
    assert "may not patch" in outcome.detail


@pytest.mark.parametrize(
    ("changes", "actor", "expected"),
    [
        ({"uid": "another"}, "service", ("gone", None)),
        ({"before": 3}, "service", ("conflict", None)),
        ({"before": 3}, "apply", ("conflict", None)),
        ({"before": 3}, "undo", ("refused", Reason.SUPERSEDED)),
        ({"before": 3}, "revert", ("refused", Reason.SUPERSEDED)),
        ({"container": "other"}, "service", ("conflict", None)),
        ({"resource": "amd.com/gpu"}, "service", ("conflict", None)),
    ],
)
async def test_an_object_that_is_not_as_judged_is_not_changed(
    scene: Any, words: Any, changes: dict[str, Any], actor: str, expected: tuple[str, Reason | None]
) -> None:
    stage(scene, words, "template")
    outcome = await scene.execute(words.act(**changes), actor=actor)

    assert (outcome.kind, outcome.reason) == expected
    assert scene.api.sent == [f"GET {words.deployment}"]


async def test_an_object_that_is_being_deleted_is_gone(scene: Any, words: Any) -> None:
    scene.hold(words.deployment, words.workload(deletionTimestamp="2026-01-01T00:00:00Z"))
    outcome = await scene.execute(words.act())

    assert (outcome.kind, outcome.record) == ("gone", None)


@pytest.mark.parametrize(("group", "kind"), [("apps", "Job"), ("", "Pod"), ("apps", "CronJob"), ("x", "Y")])
async def test_a_kind_without_a_request_has_no_lever(scene: Any, words: Any, group: str, kind: str) -> None:
    target = msgspec.structs.replace(words.act().target, group=group, kind=kind)
    outcome = await scene.execute(words.act(target=target))

    assert (outcome.kind, outcome.reason) == ("refused", Reason.NO_LEVER)
    assert scene.api.sent == []


async def test_guards_that_say_no_now_are_the_outcome(scene: Any, words: Any) -> None:
    stage(scene, words, "template")

    async def no(action: Any) -> Refusal:
        return Refusal(action.target, "right-size", Reason.PROTECTED, "marks", "the owner said no")

    outcome = await scene.execute(words.act(), recheck=no)

    assert (outcome.kind, outcome.reason, outcome.detail) == (
        "refused",
        Reason.PROTECTED,
        "the owner said no",
    )
    assert scene.api.sent == [f"GET {words.deployment}"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"resource_version": "6"}, ("conflict", None)),
        ({"resource_version": ""}, ("done", None)),
        ({"id": "a2"}, ("conflict", None)),
        ({"after": 0}, ("conflict", None)),
        ({"held_by": (Reason.PAUSED,)}, ("refused", Reason.PAUSED)),
    ],
)
async def test_guards_must_mean_the_same_change_of_the_object_as_it_is(
    scene: Any, words: Any, changes: dict[str, Any], expected: tuple[str, Reason | None]
) -> None:
    stage(scene, words, "template")

    async def again(action: Any) -> Any:
        return msgspec.structs.replace(action, **changes)

    outcome = await scene.execute(words.act(), recheck=again)

    assert (outcome.kind, outcome.reason) == expected
    assert bool(scene.api.changes) is (expected[0] == "done")


async def test_pods_that_should_leave_are_marked_before_the_replicas_change(scene: Any, words: Any) -> None:
    stage(scene, words, "scale")
    scene.hold(f"{words.pods}idle", words.pod("idle"))
    leaving = (PodRef("team", "idle", "uid-idle"),)
    outcome = await scene.execute(words.act("scale", leaving=leaving))

    assert scene.api.changes[:2] == [f"PATCH {words.pods}idle", f"PATCH {words.deployment}/scale"]
    assert scene.api.objects[f"{words.pods}idle"]["metadata"]["annotations"] == {words.cost: LOWERED_COST}

    await scene.executor.finish(outcome.record, scene.writer)

    assert scene.api.objects[f"{words.pods}idle"]["metadata"]["annotations"] == {words.cost: LOWERED_COST}

    await scene.executor.finish(outcome.record, scene.writer, closing=True)

    assert scene.api.objects[f"{words.pods}idle"]["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ("5", ("refused", Reason.OTHER_OWNER)),
        ("0", ("refused", Reason.OTHER_OWNER)),
        ("junk", ("refused", Reason.OTHER_OWNER)),
        ("-5", ("done", None)),
        (LOWERED_COST, ("done", None)),
    ],
)
async def test_an_owners_own_deletion_cost_stays_as_it_is(
    scene: Any, words: Any, cost: str, expected: tuple[str, Reason | None]
) -> None:
    stage(scene, words, "scale")
    scene.hold(f"{words.pods}idle", words.pod("idle", annotations={words.cost: cost, "own": "x"}))
    outcome = await scene.execute(words.act("scale", leaving=(PodRef("team", "idle", "uid-idle"),)))

    assert (outcome.kind, outcome.reason) == expected
    assert scene.api.objects[f"{words.pods}idle"]["metadata"]["annotations"] == {words.cost: cost, "own": "x"}
    assert f"PATCH {words.pods}idle" not in scene.api.sent


async def test_a_deployment_does_not_shrink_when_the_pod_that_should_leave_has_left(
    scene: Any, words: Any
) -> None:
    stage(scene, words, "scale")
    outcome = await scene.execute(words.act("scale", leaving=(PodRef("team", "idle", "uid-idle"),)))

    assert (outcome.kind, scene.api.changes) == ("conflict", [])


async def test_a_refused_scale_takes_our_mark_away_again(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "scale")
    scene.hold(f"{words.pods}idle", words.pod("idle", annotations={"own": "x"}))
    scene.api.fail(sent, 409, "Conflict")
    outcome = await scene.execute(words.act("scale", leaving=(PodRef("team", "idle", "uid-idle"),)))

    assert (outcome.kind, outcome.record.state) == ("conflict", "dropped")
    assert scene.api.objects[f"{words.pods}idle"]["metadata"]["annotations"] == {"own": "x"}


async def test_a_stateful_set_is_scaled_without_marks(scene: Any, words: Any) -> None:
    scene.hold(words.stateful_set, words.workload())
    outcome = await scene.execute(
        words.act("scale", kind="StatefulSet", leaving=(PodRef("team", "web-1", "uid-web-1"),))
    )

    assert (outcome.kind, scene.api.objects[words.stateful_set]["spec"]["replicas"]) == ("done", 1)
    assert scene.api.changes[0] == f"PATCH {words.stateful_set}/scale"


async def test_the_seat_is_kept_before_anybody_is_asked_to_leave(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "evict")
    outcome = await scene.execute(words.act("evict"))

    assert outcome.kind == "done"
    assert scene.api.changes == [f"PATCH {words.pods}waiting/status", sent]
    assert scene.api.objects[f"{words.pods}waiting"]["status"]["nominatedNodeName"] == "node-1"
    assert scene.api.bodies[sent] == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "victim", "namespace": "team"},
        "deleteOptions": {"preconditions": {"uid": "uid-victim"}},
    }


async def test_a_seat_that_is_kept_already_is_left_alone_also_on_abort(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "evict")
    scene.api.objects[f"{words.pods}waiting"]["status"]["nominatedNodeName"] = "node-1"
    scene.api.fail(sent, 429, "TooManyRequests", **BUDGET)
    outcome = await scene.execute(words.act("evict"))

    assert outcome.reason is Reason.DISRUPTION_BUDGET
    assert scene.api.changes == [sent]


async def test_a_refused_eviction_gives_our_seat_up_again(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "evict")
    scene.api.fail(sent, 429, "TooManyRequests", **BUDGET)
    outcome = await scene.execute(words.act("evict"))

    assert (outcome.kind, outcome.record.state) == ("refused", "dropped")
    assert scene.api.objects[f"{words.pods}waiting"]["status"] == {"phase": "Pending"}


async def test_a_clean_up_that_fails_leaves_the_record_open_for_the_next_look(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "evict")
    scene.api.fail(sent, 429, "TooManyRequests", **BUDGET)
    waiting = f"{words.pods}waiting"
    scene.notebook.on_intend = lambda: scene.api.fail(f"GET {waiting}", 500, "InternalError")
    outcome = await scene.execute(words.act("evict"))

    assert (outcome.kind, outcome.reason) == ("refused", Reason.DISRUPTION_BUDGET)
    assert (outcome.record.state, scene.notebook.states) == ("intended", ["intended"])


@pytest.mark.parametrize(
    ("name", "item", "kind"),
    [
        ("victim", None, "gone"),
        ("victim", {"uid": "another"}, "gone"),
        ("victim", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "gone"),
        ("victim", {"phase": "Succeeded"}, "gone"),
        ("victim", {"node": "", "phase": "Pending"}, "conflict"),
        ("waiting", None, "conflict"),
        ("waiting", {"uid": "another", "node": ""}, "conflict"),
        ("waiting", {"node": "node-9"}, "conflict"),
    ],
)
async def test_nobody_is_evicted_for_a_seat_that_nobody_needs_or_that_is_not_there(
    scene: Any, words: Any, name: str, item: dict[str, Any] | None, kind: str
) -> None:
    stage(scene, words, "evict")
    del scene.api.objects[f"{words.pods}{name}"]
    if item is not None:
        scene.hold(f"{words.pods}{name}", words.pod(name, **item))
    outcome = await scene.execute(words.act("evict"))

    assert (outcome.kind, outcome.record) == (kind, None)
    assert scene.api.changes == []


async def test_without_the_right_to_keep_the_seat_nobody_is_evicted(scene: Any, words: Any) -> None:
    stage(scene, words, "evict")
    scene.api.fail(f"dry PATCH {words.pods}waiting/status", 403, "Forbidden", "may not patch pods/status")
    outcome = await scene.execute(words.act("evict"))

    assert (outcome.kind, outcome.reason) == ("refused", Reason.FORBIDDEN)
    assert scene.api.changes == []


@pytest.mark.parametrize(("code", "kind"), [(404, "conflict"), (403, "refused"), (500, "refused")])
async def test_a_seat_that_could_not_be_kept_ends_the_act_unsent(
    scene: Any, words: Any, code: int, kind: str
) -> None:
    sent = stage(scene, words, "evict")
    scene.api.fail(f"PATCH {words.pods}waiting/status", code)
    outcome = await scene.execute(words.act("evict"))

    assert (outcome.kind, outcome.record.state) == (kind, "dropped")
    assert sent not in scene.api.sent


async def test_our_entries_go_also_when_the_object_changes_meanwhile(scene: Any, words: Any) -> None:
    stage(scene, words, "template")
    path, tries = words.deployment, []
    answer = scene.api._answer

    async def moving(request: Any) -> Any:
        body = await request.json()
        if not tries:
            tries.append(1)
            scene.api.objects[path]["metadata"]["managedFields"].insert(0, {"manager": "controller"})
        return await answer(request, body)

    scene.api.faults[f"UNPATCH {path}"] = moving
    outcome = await scene.execute(words.act())

    assert (outcome.kind, outcome.detail, tries) == ("done", "", [1])
    assert scene.api.objects[path]["metadata"]["managedFields"] == [
        {"manager": "controller"},
        {"manager": "owner"},
    ]


async def test_acts_on_one_workload_do_not_overlap(scene: Any, words: Any) -> None:
    stage(scene, words, "scale")
    first, second = await asyncio.gather(scene.execute(words.act("scale")), scene.execute(words.act("scale")))

    assert sorted([first.kind, second.kind]) == ["conflict", "done"]
    assert scene.api.objects[words.deployment]["spec"]["replicas"] == 1


async def test_a_cancelled_act_is_not_swallowed_and_stays_intended(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "template")
    scene.api.fall_silent(sent)
    task = asyncio.create_task(scene.execute(words.act()))
    async with asyncio.timeout(10):
        while sent not in scene.api.sent:  # noqa: ASYNC110 - the server's own list
            await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert scene.notebook.states == ["intended"]


async def test_every_changing_request_has_a_probe_on_both_sides(scene: Any, words: Any) -> None:
    stage(scene, words, "evict")
    await scene.execute(words.act("evict"))
    scene.hold(f"{words.pods}idle", words.pod("idle"))
    await scene.execute(words.act("scale", leaving=(PodRef("team", "idle", "uid-idle"),)))
    sites = [
        "dry-run",
        "dry-run",
        "nominate",
        "evict",
        "dry-run",
        "dry-run",
        "deletion-cost",
        "change",
        "disown",
    ]

    assert scene.probed == [f"{when} {site}" for site in sites for when in ("before", "after")]


async def test_entries_that_cannot_be_taken_out_are_told_and_the_change_is_done(
    scene: Any, words: Any
) -> None:
    stage(scene, words, "template")
    scene.api.fail(f"UNPATCH {words.deployment}", 422, "Invalid")
    outcome = await scene.execute(words.act())

    assert (outcome.kind, outcome.record.state) == ("done", "acted")
    assert "not followed up yet" in outcome.detail
    assert scene.api.sent.count(f"UNPATCH {words.deployment}") == DISOWN_TRIES


@pytest.mark.parametrize("item", [None, {"uid": "another"}, {}])
async def test_following_up_leaves_another_object_and_one_without_our_entries_alone(
    scene: Any, words: Any, item: dict[str, Any] | None
) -> None:
    stage(scene, words, "template")
    record = (await scene.execute(words.act())).record
    changes = list(scene.api.changes)
    del scene.api.objects[words.deployment]
    if item is not None:
        scene.hold(words.deployment, words.workload(**item))
    await scene.executor.finish(record, scene.writer, closing=True)

    assert scene.api.changes == changes


async def test_an_object_that_goes_while_it_is_followed_up_needs_no_more(scene: Any, words: Any) -> None:
    stage(scene, words, "template")
    scene.api.fail(f"UNPATCH {words.deployment}", 404, "NotFound")
    outcome = await scene.execute(words.act())

    assert (outcome.kind, outcome.detail) == ("done", "")


async def test_a_mark_that_somebody_changed_meanwhile_is_theirs(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "scale")
    scene.hold(f"{words.pods}idle", words.pod("idle"))
    scene.api.fail(sent, 409, "Conflict")
    scene.api.fail(f"UNPATCH {words.pods}idle", 422, "Invalid")
    outcome = await scene.execute(words.act("scale", leaving=(PodRef("team", "idle", "uid-idle"),)))

    assert (outcome.kind, outcome.record.state) == ("conflict", "dropped")


async def test_what_a_person_puts_back_is_closed_at_once(scene: Any, words: Any) -> None:
    stage(scene, words, "template")
    outcome = await scene.execute(words.act(), actor="undo")

    assert (outcome.kind, scene.notebook.states) == ("done", ["intended", "acted", "verified"])


async def test_a_stateful_set_that_a_person_puts_back_stays_open_for_its_pods(scene: Any, words: Any) -> None:
    scene.hold(words.stateful_set, words.workload())
    outcome = await scene.execute(words.act(kind="StatefulSet"), actor="undo")

    assert (outcome.kind, scene.notebook.states) == ("done", ["intended", "acted"])


async def test_an_eviction_without_a_seat_keeps_none(scene: Any, words: Any) -> None:
    sent = stage(scene, words, "evict")
    outcome = await scene.execute(words.act("evict", seat=None))

    assert (outcome.kind, scene.api.changes) == ("done", [sent])


async def test_an_eviction_that_names_no_pod_has_no_lever(scene: Any, words: Any) -> None:
    outcome = await scene.execute(words.act("evict", pod=None))

    assert (outcome.reason, scene.api.sent) == (Reason.NO_LEVER, [])


async def test_guards_that_say_no_to_an_eviction_now_are_the_outcome(scene: Any, words: Any) -> None:
    stage(scene, words, "evict")

    async def no(action: Any) -> Refusal:
        return Refusal(action.target, "make-room", Reason.PROTECTED, "marks", "the owner said no")

    outcome = await scene.execute(words.act("evict"), recheck=no)

    assert (outcome.kind, outcome.reason) == ("refused", Reason.PROTECTED)
    assert scene.api.changes == []
