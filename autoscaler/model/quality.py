"""How good the figures of one workload are, and the figures themselves as they were read for it."""

from typing import Final

import msgspec

from autoscaler.model.duration import Instant, Span

MOST_BOARDS: Final = 64
"""Rows of one explanation: eight full nodes; more say the same again."""


class Quality(msgspec.Struct, frozen=True):
    """What a workload's verdict rests on, or why there is none.

    `judged` are its units that run and are old enough, `measured` those of them that can lead to less. `coverage` (samples
    seen / expected) and `age_ms` (of the newest sample) are those of its worst board, None where no board was seen.
    `doubt` is the first unit that is not measured, with the reason.
    """

    judged: int = 0
    measured: int = 0
    profile: str = ""
    signal: str = ""
    interval_ms: Span = 0
    interval_measured: bool = False
    coverage: float | None = None
    age_ms: Span | None = None
    doubt: str = ""


class BoardFigures(msgspec.Struct, frozen=True):
    """What one source said of one board of a workload: shares of 1, MiB, ms; None where it said nothing usable.

    Each field is named after the query that it answers. `first_ms` and `newest_ms` are times by the store's clock.
    """

    pod: str
    container: str
    device: str
    source: str
    mean: float | None = None
    peak: float | None = None
    samples: int = 0
    newest_ms: Instant = -1
    history_p95: float | None = None
    history_peak: float | None = None
    history_busiest: float | None = None
    history_samples: int = 0
    history_first_ms: Instant = -1
    memory_peak_mib: int | None = None
    memory_total_mib: int | None = None
    marks: tuple[str, ...] = ()


class Query(msgspec.Struct, frozen=True):
    """One query of a source, and the figures that its answer became: names of `BoardFigures`' fields."""

    source: str
    asks: str
    text: str
    figures: tuple[str, ...] = ()


class Explanation(msgspec.Struct, frozen=True):
    """What only an explanation of one workload needs; no plan carries it.

    `boards` are the first `MOST_BOARDS` rows that were read, `left_out` is how many more there are. `servers` are the signs
    that inference servers give. `terms` are what holds for it, and who says so. `verdict_changes` says at which figures the verdict would be another one, `commands` how to
    leave the workload alone, stop everything, or put back what was done.
    """

    queries: tuple[Query, ...] = ()
    boards: tuple[BoardFigures, ...] = ()
    left_out: int = 0
    store_ms: Instant = -1
    servers: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    verdict_changes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
