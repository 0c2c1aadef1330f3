"""Leading: hold the lease, work while it lasts, and stop, awaited, before it is given back.

A `Term` is the authority of one leadership. It looks at its own age by the monotonic clock before every write, so a
process that was stopped for half a minute finds it over on its first look, whatever it has not heard yet.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, TypeVar

from autoscaler.act.contract import AuthorityLostError
from autoscaler.kube.errors import Conflict, KubeError, NotFound, Unreachable
from autoscaler.kube.lease import (
    JITTER,
    LeaseClient,
    LeaseObject,
    LeaseTimes,
    Seen,
    next_step,
    next_term,
    observe,
)
from autoscaler.service.clock import Clock
from autoscaler.service.logs import Log

Answer = TypeVar("Answer")
STOP_WITHIN_S: Final = 20.0
"""For an act in flight to end after a stop; the kubelet kills after 30 s."""


class Term:
    """The right to write of one leadership. Once it is over it stays so."""

    def __init__(self, *, number: int, holder: str, within_s: float, clock: Clock, sent_s: float) -> None:
        self._number = number
        self._holder = holder
        self._within_s = within_s
        self._clock = clock
        self._until_s = sent_s + within_s
        self._over = ""

    @property
    def term(self) -> int:
        """Grows with each change of leader."""
        return self._number

    @property
    def holder(self) -> str:
        """Who leads."""
        return self._holder

    def remaining_s(self) -> float:
        """Seconds for which a request may be under way; raises `AuthorityLostError` when there are none."""
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            self.end(f"the lease was not renewed for {self._within_s - left_s:.1f} s")
        if self._over:
            raise AuthorityLostError(self._over)
        return left_s

    def renewed(self, sent_s: float) -> None:
        """The lease was renewed by a request that was sent then; raises `AuthorityLostError` where that is too late."""
        self.remaining_s()
        self._until_s = max(self._until_s, sent_s + self._within_s)

    def end(self, why: str) -> None:
        """Nothing may be written any more."""
        self._over = self._over or why


class Leadership:
    """A candidate for one Lease. `identity` is this process' alone: no other may ever lead under it."""

    def __init__(
        self,
        client: LeaseClient,
        *,
        identity: str,
        clock: Clock,
        log: Log,
        times: LeaseTimes | None = None,
        least_term: Callable[[], int] = int,
    ) -> None:
        """`least_term` is the largest term that is known from elsewhere: a deleted Lease remembers none."""
        self._client = client
        self._identity = identity
        self._clock = clock
        self._log = log
        self._times = times or LeaseTimes()
        self._least_term = least_term
        self._seen = Seen()
        self._term: Term | None = None
        self.fault = ""
        """Why the lease could not be read or written lately; empty while it can."""

    @property
    def term(self) -> Term | None:
        """The present leadership, None while standing by."""
        return self._term

    @property
    def leader(self) -> str:
        """Who holds the lease as far as is known, empty for nobody."""
        return self._seen.holder

    async def lead(self, work: Callable[[Term], Awaitable[None]], stop: asyncio.Event) -> None:
        """Stands by and leads in turns until `stop`; an exception of the work ends it after the lease is given back.

        The work is expected to watch `stop` itself and to end its act in flight; it is cancelled on a loss. Work that
        ends with `AuthorityLostError` noticed the loss first.
        """
        while not stop.is_set():
            term = await self._acquire(stop)
            if term is None:
                return
            try:
                await self._work(term, work, stop)
            finally:
                term.end("the leadership is over")
                self._term = None
                await self._release(term)
            await self._pause(stop)

    async def _acquire(self, stop: asyncio.Event) -> Term | None:
        while not stop.is_set():
            term = await self._try_to_acquire()
            if term is not None:
                self._term = term
                self._log.info("leading", term=term.term, holder=self._identity)
                return term
            await self._pause(stop)
        return None

    async def _try_to_acquire(self) -> Term | None:
        try:
            await self._look(self._times.request_s)
            now_s = self._clock.monotonic_s()
            if next_step(self._seen, identity=self._identity, term=0, now_s=now_s) != "acquire":
                return None
            number = next_term(self._seen, self._least_term())
            sent_s = self._clock.monotonic_s()
            await self._write(holder=self._identity, term=number, taking=True, within_s=self._times.request_s)
        except KubeError as error:
            self._failed(error)
            return None
        return Term(
            number=number,
            holder=self._identity,
            within_s=self._times.renew_within_s,
            clock=self._clock,
            sent_s=sent_s,
        )

    async def _work(self, term: Term, work: Callable[[Term], Awaitable[None]], stop: asyncio.Event) -> None:
        """The work beside the renewal; both are awaited to their end, and the lease is renewed until the work's."""
        working = asyncio.ensure_future(work(term))
        renewing = asyncio.create_task(self._keep(term), name="lease-renewal")
        patience = asyncio.create_task(self._patience(stop), name="lease-stop")
        try:
            await asyncio.wait({working, renewing, patience}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            try:
                await _ended(working, patience)
            finally:
                await _ended(renewing)
        if not renewing.cancelled():
            renewing.result()
        if not working.cancelled():
            try:
                working.result()
            except AuthorityLostError as error:
                self._log.warning("work_stopped", term=term.term, because=str(error))

    async def _patience(self, stop: asyncio.Event) -> None:
        await stop.wait()
        await self._clock.sleep(STOP_WITHIN_S)

    async def _keep(self, term: Term) -> None:
        """Renews until the lease is lost; no request outlives the term."""
        while True:
            try:
                await self._clock.sleep(min(self._times.retry_s, term.remaining_s()))
                await self._renew(term)
            except AuthorityLostError as error:
                self._log.warning("leadership_lost", term=term.term, because=str(error))
                return
            except KubeError as error:
                self._failed(error)

    async def _renew(self, term: Term) -> None:
        try:
            await self._write_renewal(term)
        except (Conflict, NotFound):
            # Perhaps a write of our own was answered too late for us: only the Lease itself can tell.
            await self._look(self._limit_s(term))
            step = next_step(
                self._seen, identity=self._identity, term=term.term, now_s=self._clock.monotonic_s()
            )
            if step != "renew":
                gone = f"the lease went to {self._seen.holder or 'nobody'}"
                term.end(gone if self._seen.version else "the lease was deleted")
            await self._write_renewal(term)

    async def _write_renewal(self, term: Term) -> None:
        limit_s = self._limit_s(term)
        sent_s = self._clock.monotonic_s()
        await self._write(holder=self._identity, term=term.term, taking=False, within_s=limit_s)
        term.renewed(sent_s)

    def _limit_s(self, term: Term) -> float:
        return min(self._times.request_s, term.remaining_s())

    async def _release(self, term: Term) -> None:
        """Gives the lease back if it is still ours, so that nobody has to wait for its end."""
        try:
            await self._look(self._times.request_s)
            now_s = self._clock.monotonic_s()
            if next_step(self._seen, identity=self._identity, term=term.term, now_s=now_s) == "renew":
                await self._write(holder="", term=term.term, taking=False, within_s=self._times.request_s)
                self._log.info("lease_released", term=term.term)
        except KubeError as error:
            self._failed(error)
        if self._seen.holder == self._identity and not self._seen.version:
            # The Lease that was deleted was ours, and we have just stopped: nobody else has to be waited for.
            self._seen = replace(self._seen, holder="")

    async def _look(self, within_s: float) -> None:
        lease = await self._answer(self._client.read(), within_s)
        self._seen = observe(lease, self._seen, now_s=self._clock.monotonic_s())
        self.fault = ""

    async def _write(self, *, holder: str, term: int, taking: bool, within_s: float) -> None:
        asking = self._client.write(self._seen, holder=holder, term=term, taking=taking)
        written: LeaseObject = await self._answer(asking, within_s)
        self._seen = observe(written, self._seen, now_s=self._clock.monotonic_s())
        self.fault = ""

    async def _answer(self, asking: Coroutine[Any, Any, Answer], within_s: float) -> Answer:
        """The answer, or `Unreachable` once it is late; the session's own limits leave out its queue and its token."""
        request = asyncio.create_task(asking, name="lease-request")
        late = asyncio.create_task(self._clock.sleep(within_s), name="lease-late")
        try:
            await asyncio.wait({request, late}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(request, late)
        if request.cancelled():
            raise Unreachable("timeout", f"no answer about the lease within {within_s:.1f} s")
        return request.result()

    def _failed(self, error: KubeError) -> None:
        if str(error) != self.fault:
            self._log.warning("lease", error=str(error))
        self.fault = str(error)

    async def _pause(self, stop: asyncio.Event) -> None:
        """A little longer each time by chance: candidates that started together do not stay together."""
        seconds = self._times.retry_s * random.uniform(1.0, JITTER)  # noqa: S311 - no secret
        sleeping = asyncio.create_task(self._clock.sleep(seconds), name="lease-pause")
        stopping = asyncio.create_task(stop.wait(), name="lease-pause-stop")
        try:
            await asyncio.wait({sleeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(sleeping, stopping)


async def _ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancels what is not done and waits for its end, also while being cancelled; their results stay to be read."""
    for task in tasks:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()
    if cancelled is not None:
        raise cancelled
