"""The ledger loses nothing, lets one writer win, and never acts on what it cannot read."""

import asyncio
from typing import Any

import pytest
from act_worlds import (
    GPU,
    NOW_MS,
    SET,
    WEB,
    ActWorld,
    change_action,
    entry_of,
    fail_once,
    record_of,
    uid_of,
)
from build import DAY_MS

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.ledger import (
    ConfigMapLedger,
    InHandError,
    LedgerConflictError,
    LedgerUnreadableError,
)
from autoscaler.act.shards import HOLDER, LABELS, MAX_BYTES, TERM, number_of, written
from autoscaler.act.transitions import TransitionError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import Conflict, Unreachable
from autoscaler.model.duration import LATEST_MS
from autoscaler.model.ledger import Change, Record

UID = uid_of(WEB)
ACTION = change_action(4, 2)
FUTURE = '{"version":2,"uid":"uid-web","ref":{"group":"apps","kind":"Deployment","namespace":"team","name":"web"}, "new": 1}'


async def intend(
    ledger: ConfigMapLedger, writer: Writer, action: Any = ACTION, *, actor: Any = "service"
) -> Record:
    return await ledger.intend(writer, action, actor=actor, settle_ms=NOW_MS + 15_000)


async def test_an_act_is_written_down_and_read_by_the_next_process() -> None:
    world = ActWorld()
    record = await intend(world.ledger, world.writer)
    world.clock.pass_ms(1_000)
    await world.ledger.advance(world.writer, record, "acted")
    other = world.new_ledger()
    await other.load(world.server)

    assert {uid: [r.state for r in e.records] for uid, e in other.entries.items()} == {UID: ["acted"]}
    assert (record.term, other.entries[UID].records[0].acted_ms) == (1, NOW_MS + 1_000)
    assert other.entries == world.ledger.entries
    shard = world.server.objects[world.shard_path(UID)]
    assert shard["metadata"]["labels"] == LABELS
    assert (shard["metadata"]["annotations"][TERM], shard["metadata"]["annotations"][HOLDER]) == ("1", "one")


async def test_only_one_of_two_leaders_wins_the_swap_of_an_intent() -> None:
    world = ActWorld()
    await world.ledger.take_over(world.writer)
    second, newer = world.new_ledger(), world.writer_of(2, "two")
    await second.load(world.server)
    await second.take_over(newer)
    sent = list(world.server.sent)

    with pytest.raises(AuthorityLostError, match="belongs to term 2 of two, ours is 1"):
        await intend(world.ledger, world.writer)
    await intend(second, newer)
    with pytest.raises(AuthorityLostError):
        await intend(world.ledger, world.writer)

    assert [record.term for record in second.entries[UID].records] == [2]
    puts = [one for one in world.server.sent[len(sent) :] if one.startswith("PUT")]
    assert len(puts) == 2, "the older leader's swap was sent once, on a stale version"


async def test_the_older_leader_cannot_write_an_outcome_either() -> None:
    world = ActWorld()
    record = await intend(world.ledger, world.writer)
    second, newer = world.new_ledger(), world.writer_of(2, "two")
    await second.load(world.server)
    await second.take_over(newer)

    with pytest.raises(AuthorityLostError):
        await world.ledger.advance(world.writer, record, "acted")
    with pytest.raises(AuthorityLostError):
        await world.ledger.take_over(world.writer)


async def test_the_same_term_under_another_holder_is_not_ours() -> None:
    world = ActWorld()
    await world.ledger.take_over(world.writer)
    twin = world.new_ledger()
    await twin.load(world.server)

    with pytest.raises(AuthorityLostError, match="belongs to term 1 of one, ours is 1"):
        await twin.take_over(world.writer_of(1, "after the Lease was deleted"))


async def test_a_persons_command_keeps_term_and_holder_and_the_leader_goes_on() -> None:
    world = ActWorld()
    await world.ledger.take_over(world.writer)
    hers = world.new_ledger()
    await hers.load(world.server)
    await intend(hers, world.person, actor="apply")

    marks = world.server.objects[world.shard_path(UID)]["metadata"]["annotations"]
    assert (marks[TERM], marks[HOLDER]) == ("1", "one")
    with pytest.raises(InHandError, match="still open"):
        await intend(world.ledger, world.writer)
    record = world.ledger.entries[UID].records[0]
    assert (record.term, record.actor) == (0, "apply")
    assert (await world.ledger.advance(world.writer, record, "dropped")).state == "dropped"


async def test_a_lost_swap_is_made_again_on_what_is_there_now() -> None:
    world = ActWorld(shards=1)
    await world.ledger.take_over(world.writer)
    other = world.new_ledger()
    await other.load(world.server)
    await intend(other, world.person, change_action(3, 1, ref=SET), actor="apply")

    await intend(world.ledger, world.writer)
    await world.reload()
    assert {UID, uid_of(SET)} == set(world.ledger.entries)


async def test_a_swap_that_is_lost_again_and_again_is_a_conflict() -> None:
    world = ActWorld()
    await world.ledger.take_over(world.writer)

    def always(verb: str, path: str) -> None:
        raise Conflict(409, "Conflict", f"{verb} {path} was modified")

    world.server.before = always
    with pytest.raises(LedgerConflictError, match="3 times"):
        await intend(world.ledger, world.writer)


async def test_an_intent_whose_answer_is_lost_is_found_by_the_next_look() -> None:
    world = ActWorld()
    fail_once(Unreachable("timeout", "no answer"), on="configmaps", after=True)(world.server)
    with pytest.raises(Unreachable):
        await intend(world.ledger, world.writer)
    assert world.ledger.entries == {}

    entry = await world.reload()
    assert entry is not None
    assert entry.open_record is not None
    assert entry.open_record.state == "intended"


async def test_an_outcome_that_another_wrote_first_is_not_written_over() -> None:
    world = ActWorld()
    record = await intend(world.ledger, world.writer)
    other = world.new_ledger()
    await other.load(world.server)
    await other.advance(world.person, record, "superseded")

    with pytest.raises(TransitionError, match="is superseded, not to be acted"):
        await world.ledger.advance(world.writer, record, "acted")


async def test_nothing_is_sent_without_authority() -> None:
    world = ActWorld()
    world.writer.authority.lost = True  # type: ignore[attr-defined]
    with pytest.raises(AuthorityLostError):
        await intend(world.ledger, world.writer)
    assert world.server.sent == []


async def test_a_read_from_before_our_own_swap_does_not_replace_it() -> None:
    world = ActWorld(shards=1)
    await world.ledger.take_over(world.writer)
    answered, go_on = asyncio.Event(), asyncio.Event()
    get = world.server.get_json

    async def slow(*args: Any, **more: Any) -> Any:
        answer = await get(*args, **more)
        answered.set()
        await go_on.wait()
        return answer

    world.server.get_json = slow  # type: ignore[method-assign]
    loading = asyncio.create_task(world.ledger.load(world.server))
    await answered.wait()
    acting = asyncio.create_task(intend(world.ledger, world.writer))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(loading, acting)

    assert list(world.ledger.entries) == [UID]


@pytest.mark.parametrize(
    ("text", "why", "is_named"),
    [
        (FUTURE, "has version 2, this one knows 1", True),
        (FUTURE.replace("}, ", '}, "records":[7],'), "a form that this version does not know", True),
        ("{", "a form that this version does not know", False),
        ("", "a form that this version does not know", False),
        ("[" * 100_000, "a form that this version does not know", False),
        ('{"ref":{"group":"","kind":"","namespace":"","name":""}}', "does not know", False),
        (written(entry_of(ref=SET)), "about another workload", False),
        (written(entry_of(record_of(change_action(3, 1, ref=SET)))), "about another workload", False),
        (
            written(entry_of(record_of(ACTION), record_of(change_action(3, 1), id="b"))),
            "more than one open act",
            True,
        ),
    ],
)
async def test_an_entry_that_cannot_be_read_is_kept_byte_for_byte_and_never_acted_on(
    text: str, why: str, is_named: bool
) -> None:
    world = ActWorld(shards=1)
    world.store_text(UID, text)
    await world.ledger.load(world.server)

    assert why in world.ledger.unreadable[UID]
    assert ("" if is_named else world.ledger.unreadable[UID]) == world.ledger.fault
    assert ({WEB} if is_named else set()) == set(world.ledger.unreadable_refs)
    with pytest.raises(LedgerUnreadableError):
        await intend(world.ledger, world.writer)
    await world.ledger.take_over(world.writer)
    await intend(world.ledger, world.writer, change_action(3, 1, ref=SET))
    assert world.text(UID) == text
    left_alone = [(row.ref, row.not_before_ms) for row in world.ledger.past_acts() if row.ref == WEB]
    assert ([(WEB, LATEST_MS)] if is_named else []) == left_alone


@pytest.mark.parametrize("term", ["x", "", "-1", "9" * 5_000, "٣"])
async def test_a_term_that_cannot_be_read_stops_every_write(term: str) -> None:
    world = ActWorld(shards=1)
    await world.ledger.take_over(world.writer)
    world.server.objects[world.shard_path(UID)]["metadata"]["annotations"][TERM] = term
    await world.ledger.load(world.server)

    assert "no term" in world.ledger.fault
    assert world.ledger.largest_term == 0
    for writer in (world.writer, world.person):
        with pytest.raises(LedgerUnreadableError, match="no term"):
            await intend(world.ledger, writer)


async def test_what_is_unchanged_keeps_its_bytes() -> None:
    world = ActWorld(shards=1)
    oddly_spaced = written(entry_of(ref=SET, reversals=1)).replace(":", ": ", 3)
    world.store_text(uid_of(SET), oddly_spaced)
    await world.ledger.load(world.server)
    await intend(world.ledger, world.writer)

    assert world.text(uid_of(SET)) == oddly_spaced


async def test_labels_and_annotations_of_others_stay() -> None:
    world = ActWorld(shards=1)
    await world.ledger.take_over(world.writer)
    item = world.server.objects[world.shard_path(UID)]
    item["metadata"]["labels"]["team"] = "platform"
    item["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep"
    world.server.put(world.shard_path(UID), item)
    await intend(world.ledger, world.writer)

    meta = world.server.objects[world.shard_path(UID)]["metadata"]
    assert meta["labels"] == {**LABELS, "team": "platform"}
    assert meta["annotations"] == {TERM: "1", HOLDER: "one", "helm.sh/resource-policy": "keep"}


async def test_a_deleted_shard_is_made_again() -> None:
    world = ActWorld(shards=1)
    await world.ledger.take_over(world.writer)
    del world.server.objects[world.shard_path(UID)]
    await intend(world.ledger, world.writer)

    assert world.server.objects[world.shard_path(UID)]["metadata"]["annotations"][TERM] == "1"
    gone = record_of(change_action(3, 1, ref=SET))
    with pytest.raises(LedgerConflictError, match="no longer in the ledger"):
        await world.ledger.advance(world.writer, gone, "acted")


async def test_a_full_shard_takes_no_new_act_but_outcomes_and_what_puts_back() -> None:
    world = ActWorld(shards=1)
    record = await intend(world.ledger, world.writer)
    world.store_text("uid-huge", "x" * MAX_BYTES)
    await world.ledger.load(world.server)

    with pytest.raises(LedgerUnreadableError, match=rf"full: \d+ of {MAX_BYTES} bytes"):
        await intend(world.ledger, world.writer, change_action(3, 1, ref=SET))
    await world.ledger.take_over(world.writer)
    assert (await world.ledger.advance(world.writer, record, "acted")).state == "acted"
    undo = change_action(2, 4)
    assert (await intend(world.ledger, world.person, undo, actor="undo")).state == "intended"


async def test_a_full_shard_does_without_acts_that_nothing_looks_at_any_more() -> None:
    world = ActWorld(shards=1)
    long = "x" * 60_000
    old = [
        record_of(change_action(4, 2, because=long), "verified", id=f"r{n}", intended_ms=NOW_MS - 2 * DAY_MS)
        for n in range(16)
    ]
    change = Change("template", original=4, current=2, resource=GPU, container="main")
    world.store_text(UID, written(entry_of(*old, changes=(change,))))
    await world.ledger.load(world.server)
    await intend(world.ledger, world.writer, change_action(2, 1))

    entry = world.ledger.entries[UID]
    assert [f"template-2-1-{NOW_MS}"] == [record.id for record in entry.records]
    assert (change,) == entry.changes, "it is how the value is put back"


async def test_what_cannot_matter_any_more_is_forgotten_with_the_next_swap() -> None:
    world = ActWorld(shards=1)
    over = record_of(ACTION, "verified", closed_ms=NOW_MS)
    world.store_text(UID, written(entry_of(over)))
    await world.ledger.load(world.server)
    world.clock.pass_ms(31 * DAY_MS)
    await world.ledger.take_over(world.writer)

    assert world.ledger.entries == {}


def test_an_entry_is_in_the_same_shard_in_every_process() -> None:
    crc_of_the_standard = 0xCBF43926
    assert number_of("123456789", 8) == crc_of_the_standard % 8
