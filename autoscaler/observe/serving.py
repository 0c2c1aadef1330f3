"""What inference servers say of their demand: requests that wait and run, the cache, and whether a counter moved.

Gauges miss what comes and goes between two scrapes, so a counter stands beside them. A server's series come from the scrape
of its own pod; they can only speak against idleness, or for it beside the accelerators' own figures, never alone for an act.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from autoscaler.observe.answers import UNREADABLE, Answer, AnswerError, vector_rows
from autoscaler.observe.profiles import Metric, OwnerLabels, Part, load_parts
from autoscaler.observe.queries import selector
from autoscaler.observe.scope import served_from
from autoscaler.observe.series import ServingRow, number

_PACE_PARTS: Final = 4
_FULL: Final = 0.95
"""Share of the samples that the pace of the last part of the window lets expect."""
_CACHE_SCALE: Final = 10_000
_UNREADABLE: Final = -1.0
_BORN: Final = 0.9
"""A series with fewer of the samples than this share of another's began inside the window."""
_labels_decoder = msgspec.json.Decoder(dict[str, str])


class ServingProfile(Part, frozen=True):
    """One inference server. Each signal lists the names it has had, the newest first; `cache` is a share of 1.

    `combine` tells how several series of one pod make its figure: models are summed, rows that repeat a total are not.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    owner: OwnerLabels
    queue: tuple[Metric, ...] = ()
    running: tuple[Metric, ...] = ()
    cache: tuple[Metric, ...] = ()
    counters: tuple[Metric, ...] = ()
    combine: Literal["max", "sum"] = "max"

    def __post_init__(self) -> None:
        if not (self.queue or self.running):
            raise ValueError("a server needs queue or running")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that is read."""
        return (*self.queue, *self.running, *self.cache, *self.counters)

    @property
    def gauges(self) -> tuple[str, ...]:
        """The gauge whose samples are counted: requests that run, else those that wait."""
        return self.running or self.queue


class ServingQueries(msgspec.Struct, frozen=True):
    """The queries of one server over the evidence window, each by namespace and pod; None where it has no such signal."""

    count: str
    pace: str
    queue: str | None = None
    running: str | None = None
    cache: str | None = None
    counter: str | None = None
    counter_samples: str | None = None
    counter_most: str | None = None
    counter_series: str | None = None


def load_serving_profiles(*folders: Path) -> tuple[ServingProfile, ...]:
    """The profiles of the folders' `*.yaml` files by name, a later folder's before an earlier one's.

    None where there is no such folder; raises `ProfileError`.
    """
    return load_parts(ServingProfile, *folders)


def names_of(answer: Answer) -> frozenset[str]:
    """The metric names that an answer is grouped by; raises `AnswerError`."""
    return frozenset(labels.get("__name__", "") for labels, _ in _labelled(answer))


def _labelled(answer: Answer) -> Iterator[tuple[dict[str, str], float]]:
    for rows in vector_rows(answer):
        for row in rows:
            try:
                yield _labels_decoder.decode(row.metric), number(row)
            except UNREADABLE as error:
                raise AnswerError(f"unreadable labels: {error}") from error


def live_query(profiles: Sequence[ServingProfile], *, window_ms: int) -> str:
    """Which of the servers' metrics have a sample in the window: one row for each name."""
    names = sorted({metric for profile in profiles for metric in profile.metrics})
    return f'count by (__name__) (last_over_time({{__name__=~"{"|".join(names)}"}}[{window_ms}ms]))'


def serving_queries(
    profile: ServingProfile, *, window_ms: int, namespaces: Collection[str] = ()
) -> ServingQueries:
    """The queries of a server; names of one signal are alternatives, the first that a pod has is its own."""
    pace_ms, where = window_ms // _PACE_PARTS, served_from(profile.owner.namespace, namespaces)

    def over(function: str, metrics: tuple[str, ...], aggregate: str, range_ms: int = window_ms) -> str:
        labels = f"{profile.owner.namespace}, {profile.owner.pod}"
        return " or ".join(
            f"{aggregate} by ({labels}) ({function}({selector(metric, {}, where)}[{range_ms}ms]))"
            for metric in metrics
        )

    return ServingQueries(
        count=over("count_over_time", profile.gauges, "max"),
        pace=over("count_over_time", profile.gauges, "max", pace_ms),
        queue=over("max_over_time", profile.queue, profile.combine) or None,
        running=over("max_over_time", profile.running, profile.combine) or None,
        cache=over("max_over_time", profile.cache, "max") or None,
        counter=over("changes", profile.counters, "sum") or None,
        counter_samples=over("count_over_time", profile.counters, "sum") or None,
        counter_most=over("count_over_time", profile.counters, "max") or None,
        counter_series=over("count_over_time", profile.counters, "count") or None,
    )


def by_owner(profile: ServingProfile, answer: Answer) -> dict[tuple[str, str], float]:
    """The values of an answer by (namespace, pod), -1 for what is no number; the namespace is empty where none is told."""
    labels = (profile.owner.namespace, profile.owner.pod)
    return {
        (found.get(labels[0], ""), found.get(labels[1], "")): value if 0 <= value < math.inf else _UNREADABLE
        for found, value in _labelled(answer)
        if found.get(labels[1])
    }


def _began(values: Mapping[str, float | None]) -> int:
    """1 if a counter's series began inside the window: its first request is no change of it."""
    samples, most, series = (values.get(f"counter_{name}") or 0.0 for name in ("samples", "most", "series"))
    gauge = values.get("count") or 0.0
    return int(samples < _BORN * most * series or most < _BORN * gauge)


def serving_rows(
    profile: ServingProfile, answers: Mapping[str, Mapping[tuple[str, str], float]]
) -> tuple[ServingRow, ...]:
    """The rows of one server, in the order of their names; `answers` are by the name of the query.

    Each pod's samples are held against its own pace at the end of the window: pods can be scraped at different intervals.
    """
    rows = []
    for owner in sorted({owner for found in answers.values() for owner in found}):
        told = {name: found.get(owner) for name, found in answers.items()}
        readable = _UNREADABLE not in told.values()
        values = {name: None if value == _UNREADABLE else value for name, value in told.items()}
        cache, moves = values.get("cache"), values.get("counter")
        rows.append(
            ServingRow(
                namespace=owner[0],
                pod=owner[1],
                server=profile.name,
                samples=round(values["count"] or 0) if readable else 0,
                expected=round(_PACE_PARTS * (values["pace"] or 0.0) * _FULL),
                queue_peak=values.get("queue"),
                running_peak=values.get("running"),
                cache_peak=None if cache is None else min(_CACHE_SCALE, round(cache * _CACHE_SCALE)),
                counter_moves=None if moves is None else round(moves) + _began(values),
            )
        )
    return tuple(rows)
