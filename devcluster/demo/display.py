"""What the audience gets: a live picture on a terminal, a picture per change without one, and only the last one with --once."""

import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

from devcluster.demo.screen import Facts, frame
from devcluster.demo.show import Show
from devcluster.demo.story import Story

_WIDTH = 150


def say(text: str) -> None:
    """A line for whoever started this, beside the pictures."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


class Display:
    """Draws the show, from `with` until its end."""

    def __init__(self, show: Show, story: Story, started_s: float, *, is_live: bool) -> None:
        self._show = show
        self._story = story
        self._started_s = started_s
        self._is_live = is_live
        self._console = Console() if is_live else Console(width=_WIDTH)
        self._live: Live | None = None
        self._stack = ExitStack()
        self._drawn: object = None
        self._told = ""

    def __enter__(self) -> Self:
        """Takes the terminal, if there is one."""
        if self._is_live and self._console.is_terminal:
            live = Live(console=self._console, screen=True, auto_refresh=False, vertical_overflow="crop")
            self._live = self._stack.enter_context(live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the terminal back."""
        self._live = None
        self._stack.__exit__(kind, error, trace)

    def draw(self) -> None:
        """The newest picture, where somebody looks."""
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
            return
        self._tell_scene()
        if self._is_live and (now := self._gist()) != self._drawn:
            self._console.print(self._picture())
            self._drawn = now

    def print_last(self) -> None:
        """The last picture, to stay."""
        self._console.print(self._picture())

    def _tell_scene(self) -> None:
        scene = self._story.scene
        if scene.phase != self._told:
            say(f"{time.monotonic() - self._started_s:5.1f} s  {scene.phase}: {scene.tells}")
            self._told = scene.phase

    def _gist(self) -> object:
        """What has to change for a new picture where there is no terminal."""
        rows = self._show.plan.rows if self._show.plan else ()
        records = [record for entry in self._show.entries for record in entry.records]
        return (
            self._story.scene.phase,
            [(row.workload, row.reason) for row in rows],
            [(record.id, record.state) for record in records],
        )

    def _picture(self) -> RenderableType:
        show, now_s = self._show, time.monotonic()
        facts = Facts(
            api_server_url=show.cluster.server_url,
            prometheus_url=show.cluster.prometheus_url,
            service_url=show.service.url,
            elapsed_s=now_s - self._started_s,
            clock=self._story.clock(now_s),
            phase=self._story.scene.phase,
            tells=self._story.scene.tells,
            waits_for=self._story.findings.missing,
        )
        return frame(show.plan, show.entries, facts, show.readiness)
