"""One serving workload over time: samples in, the replicas that should be there out, with the sentence that explains it."""

from typing import Final

import msgspec

from autoscaler.decide.scaling.choice import Bounds, Choice
from autoscaler.decide.scaling.demand import Load
from autoscaler.decide.scaling.forecast import Forecasts, Outlook
from autoscaler.decide.scaling.pace import Pace, whole
from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.decide.scaling.shape import Peak, Shape
from autoscaler.decide.scaling.zero import Wake, obstacle_to_zero, reason_to_wake
from autoscaler.model.duration import Duration
from autoscaler.model.reasons import Reason

_NO_DEMAND: Final = 1e-9


class _Need(msgspec.Struct, frozen=True):
    """What must be there: at least for growing, at most for shrinking, and why in words."""

    lower: float
    upper: float
    growth: float
    words: str


class Scaler:
    """The horizontal policy of one workload.

    `observe` every interval (None where nothing was heard), then `ask`. Times are milliseconds and never go back.
    `startup` is the measured time from the request of a replica to its first answer; it cannot change later, since
    everything learnt is about that horizon: make a new one and feed it the history again.
    """

    def __init__(self, rules: ScalingRules, *, startup: Duration | None = None) -> None:
        self._rules = rules
        self._startup = rules.startup if startup is None else startup
        self._forecasts = Forecasts(rules, startup=self._startup)
        self._shape = Shape()
        self._pace = Pace(rules)
        self._load: Load | None = None
        self._heard_ms: int | None = None
        self._idle_since_ms: int | None = None

    def observe(self, now_ms: int, load: Load | None) -> None:
        """The load at one moment. None and times that were left out are gaps: unknown, never zero."""
        if load is None:
            return
        if self._heard_ms is not None and now_ms - self._heard_ms > 1.5 * int(self._rules.interval):
            self._forecasts.gap()
            self._pace.gap()
            self._idle_since_ms = None
        self._load, self._heard_ms = load, now_ms
        self._forecasts.observe(
            load.upper, teaches=load.lower == load.upper, foretold=self._shape.floor(now_ms)
        )
        self._pace.observe(now_ms, load.upper)
        if load.lower == load.upper:
            self._shape.observe(now_ms, load.upper)
        if load.upper > _NO_DEMAND:
            self._idle_since_ms = None
        elif self._idle_since_ms is None:
            self._idle_since_ms = now_ms

    def ask(self, now_ms: int, replicas: int, bounds: Bounds, wake: Wake | None = None) -> Choice:
        """The replicas that should be there, of the `replicas` requested now (those still starting included)."""
        if replicas == 0:
            return self._asleep(now_ms, bounds, wake)
        outlook = self._forecasts.outlook()
        if outlook is None or self._load is None or self._heard_ms is None:
            return _stay(replicas, "no sample of its load yet", Reason.EVIDENCE_ABSENT)
        age = now_ms - self._heard_ms
        if age > 2 * int(self._rules.interval):
            return _stay(replicas, f"its load was last heard {Duration(age)} ago", Reason.EVIDENCE_STALE)
        if replicas < bounds.floor:
            why = f"the minimum is {bounds.floor}"
            return Choice(replicas=bounds.floor, wanted=bounds.floor, reason=Reason.SCALED_OUT, sentence=why)
        need = self._need(now_ms, self._load, outlook)
        if whole(need.lower) > replicas:
            return self._grow(now_ms, replicas, bounds, need)
        return self._shrink(now_ms, replicas, bounds, need, wake)

    def _need(self, now_ms: int, load: Load, outlook: Outlook) -> _Need:
        unknown = load.upper - load.lower
        need, words = outlook.need, _outlook_words(outlook, load, self._startup)
        ready_ms = now_ms + int(self._startup)
        for at_ms in (ready_ms, ready_ms + int(self._rules.interval)):
            peak = self._shape.peak(at_ms, need)
            if peak is not None:
                need, words = peak.load, f"{words}; {_peak_words(peak)}"
        return _Need(max(0.0, need - unknown), need, outlook.growth, words)

    def _grow(self, now_ms: int, replicas: int, bounds: Bounds, need: _Need) -> Choice:
        wanted = whole(need.lower)

        def stay(why: str, reason: Reason) -> Choice:
            self._pace.up(now_ms, replicas, need.lower, 0.0)
            return _stay(replicas, f"{need.words}: {wanted} replicas, but {why}", reason, wanted=wanted)

        if self._load is None or not self._load.grows:
            return stay("activity alone is no demand that waits", Reason.NEEDS_CONSENT)
        if bounds.ceiling is None:
            return stay("its owner has stated no maximum", Reason.NEEDS_CONSENT)
        if replicas >= bounds.ceiling:
            return stay(f"the maximum is {bounds.ceiling}", Reason.LADDER_END)
        if bounds.seats is not None and bounds.seats <= 0:
            return stay("no free seat inside its quota", Reason.NO_PLACEMENT)
        after = self._pace.up(now_ms, replicas, need.lower, need.growth)
        seats = after if bounds.seats is None else replicas + bounds.seats
        after = min(after, bounds.ceiling, seats)
        return Choice(
            replicas=after,
            wanted=wanted,
            reason=Reason.SCALED_OUT,
            sentence=f"{need.words}: {replicas} -> {after}",
        )

    def _shrink(self, now_ms: int, replicas: int, bounds: Bounds, need: _Need, wake: Wake | None) -> Choice:
        wanted, floor = whole(need.upper), max(1, bounds.floor)
        after = max(self._pace.down(now_ms, replicas, need.upper), floor)
        if replicas == 1 and bounds.floor == 0:
            return self._to_zero(now_ms, need, wanted, wake)
        if wanted >= replicas:
            return _stay(replicas, need.words, None, wanted=wanted)
        if replicas <= floor:
            return _stay(replicas, f"{need.words}; the minimum is {floor}", Reason.LADDER_END, wanted=wanted)
        if not self._pace.covered(now_ms):
            why = f"{need.words}; samples do not cover {self._rules.window} yet"
            return _stay(replicas, why, Reason.EVIDENCE_PARTIAL, wanted=wanted)
        if after == replicas:
            why = f"{need.words}; {self._pace.idle:.0f} of {self._rules.act_cost:.0f} replica-minutes have stood idle"
            return _stay(replicas, why, Reason.NOT_WORTH_RESTART, wanted=wanted)
        return Choice(
            replicas=after,
            wanted=wanted,
            reason=Reason.SCALED_IN,
            sentence=f"{need.words}: {replicas} -> {after}",
        )

    def _to_zero(self, now_ms: int, need: _Need, wanted: int, wake: Wake | None) -> Choice:
        obstacle = obstacle_to_zero(wake, now_ms=now_ms, idle_since_ms=self._idle_since_ms, rules=self._rules)
        if obstacle:
            return _stay(1, f"{need.words}; 1 replica stays: {obstacle}", Reason.LADDER_END, wanted=wanted)
        idle = Duration(now_ms - (self._idle_since_ms or 0))
        start = wake.cold_start if wake else None
        sentence = f"without demand for {idle}; its wake signal is heard and a wake-up takes up to {start}"
        return Choice(replicas=0, wanted=0, reason=Reason.RELEASED, sentence=sentence)

    def _asleep(self, now_ms: int, bounds: Bounds, wake: Wake | None) -> Choice:
        """Only what we may release is ours to wake: any other workload at 0 was put there by its owner."""
        if bounds.floor > 0:
            return _stay(0, "at 0 replicas by its owner's hand", Reason.NEEDS_CONSENT, wanted=0)
        why = reason_to_wake(wake, now_ms=now_ms, rules=self._rules)
        if why is None:
            return _stay(0, "no request waits", None, wanted=0)
        return Choice(replicas=1, wanted=1, reason=Reason.WOKEN, sentence=f"{why}: 0 -> 1")


def _stay(replicas: int, sentence: str, reason: Reason | None, *, wanted: int | None = None) -> Choice:
    return Choice(
        replicas=replicas, wanted=replicas if wanted is None else wanted, reason=reason, sentence=sentence
    )


def _outlook_words(outlook: Outlook, load: Load, startup: Duration) -> str:
    heard = f"{load.upper:.2f}" if load.lower == load.upper else f"{load.lower:.2f} to {load.upper:.2f}"
    return (
        f"{heard} replicas' worth of {load.signal}, {outlook.expected:.2f} expected within {startup} by {outlook.way}, "
        f"{outlook.room:.2f} for its misses ({outlook.trust:.0%} from its own past)"
    )


def _peak_words(peak: Peak) -> str:
    past = f"of {peak.foretold} earlier ones {peak.came} came" if peak.foretold else "the first one foretold"
    return f"{peak.load:.2f} came at this time on every day remembered ({past})"
