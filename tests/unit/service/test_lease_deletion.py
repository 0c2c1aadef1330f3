"""A Lease that somebody deletes lets nobody in before its leader must have noticed; a leadership never spins."""

import asyncio

from lease_worlds import Candidate, LeaseServer, World, candidate, settled

from autoscaler.service.leadership import Term


async def end(*candidates: Candidate) -> None:
    for one in candidates:
        await one.kill()


async def test_a_standby_that_saw_a_deleted_lease_waits_until_its_leader_must_have_stopped() -> None:
    world, server = World(), LeaseServer()
    leader, standby = candidate(world, server, "leader"), candidate(world, server, "standby")
    leader.start()
    await settled()
    standby.start()
    await world.advance(5.0)
    leader.wire.mode, server.lease = "silent", None
    both: list[float] = []
    world.after_each = lambda: (
        both.append(world.now_s) if leader.may_write() and standby.may_write() else None
    )
    await world.advance(5.0)
    early = list(standby.terms)
    await world.advance(15.0)

    assert (early, leader.terms, standby.terms) == ([], [1], [2])
    assert both == []
    await end(leader, standby)


async def test_a_leader_puts_its_deleted_lease_back_and_leads_on_in_its_term() -> None:
    world, server = World(), LeaseServer()
    leader, standby = candidate(world, server, "leader"), candidate(world, server, "standby")
    leader.start()
    await settled()
    standby.start()
    await world.advance(5.0)
    server.lease = None
    await world.advance(60.0)

    assert (leader.terms, standby.terms) == ([1], [])
    assert server.holder == "leader"
    await end(leader, standby)


async def test_a_lease_made_anew_by_another_ends_the_term() -> None:
    world, server = World(), LeaseServer()
    leader = candidate(world, server, "leader")
    leader.start()
    await world.advance(5.0)
    server.lease = None
    newcomer = candidate(world, server, "newcomer", least_term=lambda: 1)
    newcomer.start()
    await world.advance(2.5)

    assert (leader.may_write(), newcomer.terms) == (False, [2])
    assert leader.leadership.leader == "newcomer"
    await end(leader, newcomer)


async def test_terms_grow_though_a_person_strips_the_lease_of_them() -> None:
    world, server = World(), LeaseServer()
    leader = candidate(world, server, "leader", least_term=lambda: 40)
    leader.start()
    await world.advance(5.0)
    assert server.lease is not None
    server.lease = {**server.lease, "metadata": {"resourceVersion": "999", "annotations": {}}}
    await world.advance(30.0)

    assert leader.terms == [41, 42]
    await end(leader)


async def test_work_that_ends_at_once_leads_again_after_a_pause() -> None:
    world, server = World(), LeaseServer()
    one = candidate(world, server)

    async def nothing(term: Term) -> None:
        one.terms.append(term.term)

    task = asyncio.create_task(one.leadership.lead(nothing, one.stop))
    await world.advance(20.0)
    one.stop.set()
    await world.advance(5.0)

    assert task.done()
    assert 20 / 2.4 <= len(one.terms) <= 20 / 2.0 + 1


async def test_work_that_does_not_heed_a_stop_is_cancelled_and_the_lease_kept_until_then() -> None:
    world, server = World(), LeaseServer()
    one = candidate(world, server)

    async def deaf(term: Term) -> None:
        one.terms.append(term.term)
        await asyncio.Event().wait()

    task = asyncio.create_task(one.leadership.lead(deaf, one.stop))
    await world.advance(5.0)
    one.stop.set()
    await world.advance(19.5)
    kept = server.holder
    await world.advance(1.0)

    assert kept == "a"
    assert task.done()
    assert server.holder == ""
