"""Tells tenants what was done to their workloads, and what was tried: one Event each, never a flood, never in the way.

Events are a courtesy: the ledger is the record. They are queued and sent beside the acting; what does not fit the rate or
the queue is counted and dropped, and an error is logged once.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.contract import Outcome as ActOutcome
from autoscaler.kube.errors import KubeError
from autoscaler.kube.events import EventType, event_object, event_path
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire import Present
from autoscaler.model.plan import Action, PodRef
from autoscaler.service.clock import Clock
from autoscaler.service.logs import Log
from autoscaler.service.telemetry import Metrics

SAME_S: Final = 120.0
"""The same words about the same object within this time are one Event."""
REFUSED_S: Final = 900.0
"""For what was tried and refused: the next try is a cycle away."""
BURST: Final = 25
ONE_PER_S: Final = 10.0
"""A refill of one Event in ten seconds after the burst."""
QUEUED: Final = 100
REQUEST_S: Final = 5.0
_WORDS: Final = {
    "make-room": "Evict",
    "right-size": "RightSize",
    "scale-in": "ScaleIn",
    "idle": "Release",
    "deactivate": "Deactivate",
}
_any = msgspec.json.Decoder(Present)
_API_VERSIONS: Final = {"apps": "apps/v1", "batch": "batch/v1", "": "v1"}


class EventRecorder:
    """`tell` never waits; `run` sends what is queued, for as long as `may_write` allows."""

    def __init__(
        self,
        session: KubeSession,
        *,
        instance: str,
        may_write: Callable[[], float],
        clock: Clock,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._session = session
        self._instance = instance
        self._may_write = may_write
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._queue: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(QUEUED)
        self._told: dict[tuple[str, str, str], float] = {}
        self._tokens = float(BURST)
        self._refilled_s = clock.monotonic_s()
        self._errors: set[str] = set()

    def tell(self, action: Action, outcome: ActOutcome) -> None:
        """An act was carried out or refused; what only has to be thought again is nobody's news."""
        if outcome.kind not in {"done", "refused"}:
            return
        done = outcome.kind == "done"
        reason = action.reason if done else outcome.reason
        if reason is None:
            return
        note = f"{_change(action)}: {action.because if done else outcome.detail}"
        self._note(action, reason.value, note, kind="Normal" if done else "Warning", pod=None)
        if done and action.pod is not None:
            self._note(action, reason.value, note, kind="Normal", pod=action.pod)

    def _note(self, action: Action, reason: str, note: str, *, kind: EventType, pod: PodRef | None) -> None:
        uid = pod.uid if pod else action.uid
        now_s = self._clock.monotonic_s()
        key = (uid, reason, _change(action) if kind == "Warning" else note)
        if now_s - self._told.get(key, float("-inf")) < (REFUSED_S if kind == "Warning" else SAME_S):
            return
        if not self._take_token(now_s):
            self._metrics.event_dropped("rate")
            return
        self._told = {one: at for one, at in self._told.items() if now_s - at < REFUSED_S} | {key: now_s}
        ref = action.target
        body = event_object(
            api_version="v1" if pod else _API_VERSIONS.get(ref.group, ref.group),
            kind="Pod" if pod else ref.kind,
            namespace=pod.namespace if pod else ref.namespace,
            name=pod.name if pod else ref.name,
            uid=uid,
            reason=reason,
            action=_WORDS[action.method],
            note=note,
            instance=self._instance,
            now_ms=self._clock.now_ms(),
            kind_of_event=kind,
        )
        try:
            self._queue.put_nowait((body["regarding"]["namespace"], body))
        except asyncio.QueueFull:
            self._metrics.event_dropped("queue")

    async def run(self) -> None:
        """Sends until cancelled; an Event that cannot be sent is dropped."""
        while True:
            namespace, body = await self._queue.get()
            try:
                left_s = self._may_write()
                await self._session.write(
                    "POST",
                    event_path(namespace),
                    body,
                    _any,
                    timeout_s=min(REQUEST_S, left_s),
                    before_send=self._last_check,
                )
            except AuthorityLostError:
                self._metrics.event_dropped("authority")
            except KubeError as error:
                self._metrics.event_dropped("error")
                if error.label not in self._errors:
                    self._errors.add(error.label)
                    self._log.warning("event_not_written", error=str(error), namespace=namespace)

    def _last_check(self) -> None:
        self._may_write()

    def _take_token(self, now_s: float) -> bool:
        self._tokens = min(BURST, self._tokens + (now_s - self._refilled_s) / ONE_PER_S)
        self._refilled_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _change(action: Action) -> str:
    if action.lever == "evict":
        pod, seat = action.pod, action.seat
        return f"eviction of {pod} for {seat.pod if seat else 'nobody'}"
    if action.through is not None:
        return f"{action.through.field} {action.before} -> {action.after}"
    what = action.resource if action.lever == "template" else "replicas"
    return f"{what} {action.before} -> {action.after}"
