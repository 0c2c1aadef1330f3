"""Our own policies in the backtest: the code that decides about a cluster, fed from a recorded trace."""

import math
from collections.abc import Mapping
from typing import Final

from autoscaler.decide.sizing.peers import Peers, peers_of
from autoscaler.decide.sizing.rules import Risk, SizingRules
from autoscaler.decide.sizing.slices import Ladder
from autoscaler.decide.sizing.vertical import Choice, Holding, decide_allocation
from autoscaler.decide.sizing.watch import Watch, active, holding, released, woken
from autoscaler.model.backtest import COMPUTE, MEMORY, RELEASED, WHOLE
from autoscaler.replay.report import MakePolicy

LADDER: Final = Ladder(COMPUTE, MEMORY)
UNKNOWN_INTERVAL_S: Final = 60.0
"""Until two samples of one pod have been seen."""


class Sizing:
    """The sizing rules for every pod of a trace; what one pod shows is known of its peers from then on."""

    def __init__(self, rules: SizingRules, board_gib: float) -> None:
        self._rules = rules
        self._board_gib = board_gib
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self._interval_s = math.inf
        self._watches: dict[str, Watch] = {}
        self._holdings: dict[str, Holding] = {}
        self._peers: tuple[float, Peers] | None = None

    def pod_started(self, pod: str, now_s: float) -> None:
        """It holds a whole board, and nothing is known of it."""
        self._watches[pod] = Watch(interval_s=self._interval, counted_s=now_s)
        self._holdings[pod] = Holding(ladder=LADDER, step=WHOLE, board_gib=self._board_gib)

    def pod_ended(self, pod: str, now_s: float) -> None:
        """Nothing of it stays."""
        del self._watches[pod], self._holdings[pod]

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """Adds the sample to what is known."""
        watch = self._watches[pod]
        if duty is not None:
            if watch.last_s is not None:
                self._interval_s = min(self._interval_s, now_s - watch.last_s)
            watch = active(watch, now_s, duty, self._rules)
        if memory_gib is not None:
            watch = holding(watch, now_s, memory_gib)
        self._watches[pod] = watch

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """Takes note of a change that is in force, and of a wake."""
        held = self._holdings[pod]
        woke = held.step == RELEASED and step != RELEASED
        if woke:
            self._watches[pod] = woken(self._watches[pod], now_s, self._rules)
        elif step == RELEASED:
            self._watches[pod] = released(self._watches[pod], now_s, self._rules)
        self._holdings[pod] = Holding(
            ladder=LADDER, step=step, board_gib=self._board_gib, changed_s=held.changed_s if woke else now_s
        )

    def ask(self, pod: str, now_s: float) -> int:
        """The step that the rules choose."""
        return self.choice(pod, now_s).step

    def choice(self, pod: str, now_s: float) -> Choice:
        """The step, and why."""
        if self._peers is None or self._peers[0] != now_s:
            self._peers = now_s, peers_of(self._watches.values(), self._rules, now_s)
        return decide_allocation(self._watches[pod], self._holdings[pod], self._peers[1], self._rules, now_s)

    @property
    def _interval(self) -> float:
        return self._interval_s if math.isfinite(self._interval_s) else UNKNOWN_INTERVAL_S


POLICIES: Final[Mapping[str, MakePolicy]] = {
    "autoscaler-careful": lambda board_gib: Sizing(SizingRules(risk=Risk.CAREFUL), board_gib),
    "autoscaler-saving": lambda board_gib: Sizing(SizingRules(risk=Risk.SAVING), board_gib),
}
"""By name: a new policy for boards of so many GiB."""
