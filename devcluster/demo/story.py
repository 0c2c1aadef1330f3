"""The story as a state machine: which phase it is, what time of the day, and whether to wait, go on or give up.

It is told the time and what was found; it asks nobody and does nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from devcluster.demo.phases import Findings, Phase

_MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A phase on the day's clock: from when to when, how long it is shown when played live, and when it has failed."""

    phase: Phase
    tells: str
    from_hour: int
    hours: int
    shown_s: float
    deadline_s: float


SCENES = (
    Scene(
        phase=Phase.RECOMMEND,
        tells="the service looks and says what it would do; it writes nothing",
        from_hour=6,
        hours=2,
        shown_s=30,
        deadline_s=150,
    ),
    Scene(
        phase=Phase.APPLY,
        tells="the operator switches to apply: each change is made, watched and has to prove itself",
        from_hour=8,
        hours=2,
        shown_s=30,
        deadline_s=120,
    ),
    Scene(
        phase=Phase.DAY,
        tells="traffic peaks; burst helpers and a sandbox fill the boards that came free",
        from_hour=10,
        hours=12,
        shown_s=60,
        deadline_s=120,
    ),
    Scene(
        phase=Phase.NIGHT,
        tells="training of high priority arrives and no node can take it: burst and idle units make room",
        from_hour=2,
        hours=4,
        shown_s=40,
        deadline_s=90,
    ),
    Scene(
        phase=Phase.DAWN,
        tells="training has ended; who made room comes back by itself",
        from_hour=6,
        hours=2,
        shown_s=30,
        deadline_s=60,
    ),
    Scene(
        phase=Phase.EVENING,
        tells="the owners of helpers and sandbox take them away",
        from_hour=8,
        hours=2,
        shown_s=5,
        deadline_s=60,
    ),
)
REPEATED = tuple(scene for scene in SCENES if scene.phase not in {Phase.RECOMMEND, Phase.APPLY})

_NOTHING_SEEN = Findings(["nothing was looked at yet"])

Verdict = Literal["wait", "next", "failed"]


@dataclass
class Story:
    """Where the story is.  `in_no_hurry` shows each scene for its time even where all its claims hold already."""

    in_no_hurry: bool
    scene: Scene = SCENES[0]
    began_s: float = 0.0
    findings: Findings = _NOTHING_SEEN

    def begin(self, scene: Scene, now_s: float) -> None:
        """A scene opens."""
        self.scene, self.began_s = scene, now_s
        self.findings = _NOTHING_SEEN

    def hear(self, findings: Findings, now_s: float) -> Verdict:
        """What follows from what was found."""
        self.findings = findings
        elapsed_s = now_s - self.began_s
        if findings.broken:
            return "failed"
        if findings.missing:
            return "failed" if elapsed_s > self.scene.deadline_s else "wait"
        return "wait" if self.in_no_hurry and elapsed_s < self.scene.shown_s else "next"

    def faults(self) -> list[str]:
        """Why it failed, a line each."""
        phase = self.scene.phase
        broken = [f"{phase}: {line}" for line in self.findings.broken]
        missing = [
            f"{phase}: not within {self.scene.deadline_s:.0f} s: {line}" for line in self.findings.missing
        ]
        return broken or missing

    def clock(self, now_s: float) -> str:
        """The time of the story's day; it stands still where a scene takes longer than it is shown."""
        share = min(max(now_s - self.began_s, 0.0) / self.scene.shown_s, 1.0)
        minutes = round((self.scene.from_hour + self.scene.hours * share) * 60) % _MINUTES_A_DAY
        return f"{minutes // 60:02}:{minutes % 60:02}"


def after(scene: Scene, *, again: bool) -> Scene | None:
    """The scene that follows; after the last one the day begins again, or there is none."""
    return _following(SCENES, scene) or (REPEATED[0] if again else None)


def _following(scenes: Sequence[Scene], scene: Scene) -> Scene | None:
    place = scenes.index(scene) + 1
    return scenes[place] if place < len(scenes) else None
