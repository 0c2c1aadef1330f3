"""Leading: hold the lease, work while it lasts, and stop, awaited, before it is given back.

A `Term` is the authority of one leadership. It looks at its own age by the monotonic clock before every write, so a
process that was stopped for half a minute finds it over on its first look, whatever it has not heard yet.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from autoscaler.act.contract import AuthorityLostError
from autoscaler.kube.errors import KubeError
from autoscaler.kube.lease import LeaseClient, LeaseTimes, Seen, next_step, observe
from autoscaler.service.clock import Clock
from autoscaler.service.logs import Log

JITTER: Final = 1.2
STOP_WITHIN_S: Final = 20.0
"""For an act in flight to end after a stop; the kubelet kills after 30 s."""


class Term:
    """The right to write of one leadership."""

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
        if self._over or left_s <= 0:
            raise AuthorityLostError(
                self._over or f"the lease was not renewed for {self._within_s - left_s:.1f} s"
            )
        return left_s

    def renewed(self, sent_s: float) -> None:
        """The lease was renewed by a request that was sent then; a term that is over stays so."""
        self._until_s = max(self._until_s, sent_s + self._within_s)

    def end(self, why: str) -> None:
        """Nothing may be written any more."""
        self._over = self._over or why


class Leadership:
    """A candidate for one Lease."""

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
        self._client = client
        self._identity = identity
        self._clock = clock
        self._log = log
        self._times = times or LeaseTimes()
        self._least_term = least_term
        self._seen: Seen | None = None
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
        return self._seen.holder if self._seen is not None else ""

    async def lead(self, work: Callable[[Term], Awaitable[None]], stop: asyncio.Event) -> None:
        """Stands by and leads in turns until `stop`; an exception of the work ends it after the lease is given back.

        The work is expected to watch `stop` itself and to end its act in flight; it is cancelled on a loss.
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

    async def _acquire(self, stop: asyncio.Event) -> Term | None:
        while not stop.is_set():
            term = await self._try_to_acquire()
            if term is not None:
                self._term = term
                self._log.info("leading", term=term.term, holder=self._identity)
                return term
            await self._pause(stop, self._times.retry_s * random.uniform(1.0, JITTER))  # noqa: S311 - no secret
        return None

    async def _try_to_acquire(self) -> Term | None:
        try:
            await self._look()
            seen = self._seen
            if (
                seen is None
                or next_step(seen, identity=self._identity, holds=False, now_s=self._clock.monotonic_s())
                != "acquire"
            ):
                return None
            number = max(seen.term, seen.transitions, self._least_term()) + 1
            sent_s = self._clock.monotonic_s()
            written = await self._client.write(seen, holder=self._identity, term=number, taking=True)
        except KubeError as error:
            self._failed(error)
            return None
        self._seen = observe(written, seen, now_s=self._clock.monotonic_s())
        return Term(
            number=number,
            holder=self._identity,
            within_s=self._times.renew_within_s,
            clock=self._clock,
            sent_s=sent_s,
        )

    async def _work(self, term: Term, work: Callable[[Term], Awaitable[None]], stop: asyncio.Event) -> None:
        """The work beside the renewal; both are awaited to their end."""
        working = asyncio.ensure_future(work(term))
        renewing = asyncio.create_task(self._keep(term), name="lease-renewal")
        stopping = asyncio.create_task(stop.wait(), name="lease-stop")
        try:
            await asyncio.wait({working, renewing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set() and not working.done():
                await asyncio.wait(
                    {working, renewing}, timeout=STOP_WITHIN_S, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            await _cancelled(working, stopping)
            await _cancelled(renewing)
        for task in (working, renewing):
            if not task.cancelled():
                task.result()

    async def _keep(self, term: Term) -> None:
        """Renews until the lease is lost."""
        while True:
            await self._clock.sleep(self._times.retry_s)
            try:
                term.remaining_s()
                await self._renew(term)
            except AuthorityLostError as error:
                self._log.warning("leadership_lost", term=term.term, because=str(error))
                return
            except KubeError as error:
                self._failed(error)

    async def _renew(self, term: Term) -> None:
        seen = self._seen
        if seen is None:
            return
        sent_s = self._clock.monotonic_s()
        try:
            written = await self._client.write(seen, holder=self._identity, term=term.term, taking=False)
        except KubeError:
            # Perhaps our own write was answered too late for us: only the Lease itself can tell.
            await self._look()
            now = self._seen
            if now is not None and (now.holder != self._identity or now.term != term.term):
                term.end(f"the lease went to {now.holder or 'nobody'}")
                term.remaining_s()
            raise
        self._seen = observe(written, seen, now_s=self._clock.monotonic_s())
        self.fault = ""
        term.renewed(sent_s)

    async def _release(self, term: Term) -> None:
        """Gives the lease back if it is still ours, so that nobody has to wait for its end."""
        try:
            await self._look()
            seen = self._seen
            if seen is not None and seen.holder == self._identity and seen.term == term.term:
                written = await self._client.write(seen, holder="", term=term.term, taking=False)
                self._seen = observe(written, seen, now_s=self._clock.monotonic_s())
                self._log.info("lease_released", term=term.term)
        except KubeError as error:
            self._failed(error)

    async def _look(self) -> None:
        lease = await self._client.read()
        self._seen = observe(lease, self._seen, now_s=self._clock.monotonic_s())
        self.fault = ""

    def _failed(self, error: KubeError) -> None:
        if str(error) != self.fault:
            self._log.warning("lease", error=str(error))
        self.fault = str(error)

    async def _pause(self, stop: asyncio.Event, seconds: float) -> None:
        sleeping = asyncio.create_task(self._clock.sleep(seconds), name="lease-pause")
        stopping = asyncio.create_task(stop.wait(), name="lease-pause-stop")
        try:
            await asyncio.wait({sleeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancelled(sleeping, stopping)


async def _cancelled(*tasks: "asyncio.Future[None] | asyncio.Task[None] | asyncio.Task[bool]") -> None:
    """Cancels what is not done and waits for its end."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
