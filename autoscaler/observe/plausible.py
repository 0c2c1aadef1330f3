"""Counts and times that cannot be: a store answers with what it likes, and what is no count or time was not seen.

Activity and memory are judged in `holders`, against their profile's range; counts and times are judged here, first, since
everything after computes with them.
"""

from collections import Counter
from typing import Final

import msgspec
import numpy as np

from autoscaler.observe.answers import EARLIEST_S, LATEST_S
from autoscaler.observe.series import Column, ProfileSeries, SignalSeries

MAX_COUNT: Final = 1e9
"""More samples than any window holds: one a millisecond for a week is less."""
BAD_COUNT: Final = "no-count"
BAD_TIME: Final = "no-time"


def plausible(series: ProfileSeries, *, dropped: Counter[str]) -> ProfileSeries:
    """The series with implausible counts and times unseen; each is counted in `dropped` by its reason."""
    return msgspec.structs.replace(
        series, signals=tuple(_signal(signal, dropped) for signal in series.signals)
    )


def _signal(signal: SignalSeries, dropped: Counter[str]) -> SignalSeries:
    window, past = signal.window, signal.history
    return msgspec.structs.replace(
        signal,
        window=msgspec.structs.replace(
            window,
            count=_within(window.count, 0.0, MAX_COUNT, BAD_COUNT, dropped),
            covered=_within(window.covered, 0.0, MAX_COUNT, BAD_COUNT, dropped),
            newest=_within(window.newest, EARLIEST_S, LATEST_S, BAD_TIME, dropped),
        ),
        history=msgspec.structs.replace(
            past,
            count=_within(past.count, 0.0, MAX_COUNT, BAD_COUNT, dropped),
            first=_within(past.first, EARLIEST_S, LATEST_S, BAD_TIME, dropped),
        ),
    )


def _within(column: Column, least: float, most: float, reason: str, dropped: Counter[str]) -> Column:
    good = column.seen & (column.values >= least) & (column.values <= most)  # not-a-number compares as false
    bad = int(column.seen.sum()) - int(good.sum())
    if bad:
        dropped[reason] += bad
    return Column(np.where(good, column.values, 0.0), good) if bad else column
