"""The real client to a real store, with the faults that no back-filled series can have: answers that go missing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from autoscaler.observe.answers import Answer
from autoscaler.observe.prometheus import PrometheusClient, ServerError

Asked = Callable[[str], bool]
NOTHING = Answer(kind="vector", result=b"[]")


def never(_query: str) -> bool:
    return False


@dataclass(frozen=True)
class Faults:
    """Which queries are answered by nothing, by an error, or with a warning."""

    empty: tuple[Asked, ...] = ()
    refused: Asked = never
    warning: str = ""
    skew_ms: int = 0
    """How far the store's clock is ahead of the API server's."""


class FaultyClient(PrometheusClient):
    """A client of a store whose clock stands still at `at_ms`."""

    def __init__(self, url: str, *, at_ms: int, faults: Faults, **more: Any) -> None:
        super().__init__(url, **more)
        self._stands_at_ms = at_ms
        self._faults = faults

    async def query(self, promql: str, *, at_ms: int | None = None) -> Answer:
        if self._faults.refused(promql):
            raise ServerError("503: a test says so")
        if any(empty(promql) for empty in self._faults.empty):
            return NOTHING
        answer = await super().query(promql, at_ms=self._stands_at_ms if at_ms is None else at_ms)
        warnings = (self._faults.warning,) if self._faults.warning else ()
        return msgspec.structs.replace(answer, warnings=(*answer.warnings, *warnings))

    async def now_ms(self) -> int:
        return self._stands_at_ms
