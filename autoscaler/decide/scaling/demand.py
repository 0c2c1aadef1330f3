"""From what replicas and servers say to a load in replicas' worth of work, with missing replicas told apart.

A replica that says nothing is unknown, not idle: for a scale-in it counts as full, for a scale-out as empty. So a load has
two ends, and the truth lies between them.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Signal = Literal["activity", "running", "cache", "tokens"]

DEMAND_SIGNALS: Final[frozenset[Signal]] = frozenset({"running", "cache", "tokens"})
"""Signals of requests and their tokens. Activity says that kernels run, not that somebody waits."""


class ReplicaSample(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one ready replica at one moment; None where it or its server says nothing.

    `activity` and `cache` are shares 0..1, `running` and `waiting` are requests, `tokens` are tokens per second.
    """

    activity: float | None = None
    running: float | None = None
    waiting: float | None = None
    cache: float | None = None
    tokens: float | None = None


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica can carry: requests at once, tokens per second. None where it is not known."""

    running: float | None = None
    tokens: float | None = None


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Work in replicas' worth: at least `lower`, at most `upper`; equal where every ready replica was heard.

    `grows` says whether the signal is one of demand, the only kind that may add replicas.
    """

    lower: float
    upper: float
    signal: Signal
    grows: bool = True


def load_of(replicas: Sequence[ReplicaSample], capacity: Capacity) -> Load | None:
    """The highest load of any signal that at least one replica gives; None where none gives any.

    A figure that is no amount (below zero, infinite, not a number) is none. Requests that wait are work as those that run.
    The signal of the highest upper end decides; of equal ones a signal of
    demand.
    """
    loads = [
        load
        for signal in ("tokens", "running", "cache", "activity")
        if (load := _load(signal, replicas, capacity)) is not None
    ]
    return max(loads, key=lambda load: (load.upper, load.grows), default=None)


def _load(signal: Signal, replicas: Sequence[ReplicaSample], capacity: Capacity) -> Load | None:
    shares = [_share(signal, replica, capacity) for replica in replicas]
    known = [share for share in shares if share is not None and 0 <= share < math.inf]
    if not known:
        return None
    lower, missing = sum(known), len(shares) - len(known)
    return Load(lower=lower, upper=lower + missing, signal=signal, grows=signal in DEMAND_SIGNALS)


def _share(signal: Signal, replica: ReplicaSample, capacity: Capacity) -> float | None:
    """One replica's work as a share of what it can carry; may exceed 1 where requests wait."""
    if signal == "activity":
        return replica.activity
    if signal == "cache":
        return replica.cache
    if signal == "tokens":
        return replica.tokens / capacity.tokens if replica.tokens is not None and capacity.tokens else None
    if replica.running is None or not capacity.running:
        return None
    return (replica.running + (replica.waiting or 0.0)) / capacity.running
