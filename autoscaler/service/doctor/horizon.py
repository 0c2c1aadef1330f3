"""D5: does the store keep samples for long enough, and are they close enough, for the window and the history."""

import math
from typing import Final

from autoscaler.service.doctor.gathered import Gathered
from autoscaler.service.doctor.outcome import Outcome, skipped, span
from autoscaler.service.doctor.store_checks import interval_ms

_RETENTION: Final = "--storage.tsdb.retention.time (operator: spec.retention)"
_LOOK_BACK_MS: Final = 300_000
"""Prometheus' own: an instant selector finds nothing when the last sample is older."""


def check_horizon(seen: Gathered) -> Outcome:
    """D5: interval and retention against window and history."""
    if not seen.store.published:
        return skipped("no GPU series (D2)")
    every_ms = interval_ms(seen)
    problems = [*_pace(seen, every_ms), *_reach(seen)]
    found = "; ".join(_numbers(seen, every_ms))
    for state in ("failed", "warning"):
        of_state = [problem for problem in problems if problem.state == state]
        if of_state:
            words = "; ".join(problem.found for problem in problems)
            return Outcome(state, f"{words} ({found})", of_state[0].fix)
    return Outcome("ok", found)


def _numbers(seen: Gathered, every_ms: int) -> list[str]:
    policy, store = seen.policy, seen.store
    window_ms = int(policy.evidence.window)
    known = [f"a sample every {span(every_ms)}" if every_ms else "the sample interval is not known"]
    known.append(f"window {span(window_ms)}" + (f" = {window_ms // every_ms} samples" if every_ms else ""))
    age_ms = _history_ms(seen)
    known.append(f"oldest sample {span(age_ms)} old" if age_ms >= 0 else "the oldest sample is not known")
    known.append(f"history {span(int(policy.need.history_window))}")
    known.append(f"retention {span(store.retention_ms)}" if store.retention_ms >= 0 else "retention not told")
    return known


def _pace(seen: Gathered, every_ms: int) -> list[Outcome]:
    evidence = seen.policy.evidence
    window_ms = int(evidence.window)
    if not every_ms:
        return []
    fix = f"scrape the exporter every {span(_wanted_ms(seen))} or more often, or lengthen evidence.window"
    if 2 * every_ms > window_ms or every_ms > _LOOK_BACK_MS:
        return [Outcome("failed", f"samples are {span(every_ms)} apart", fix)]
    if (1 - evidence.min_coverage) * window_ms < every_ms and evidence.min_coverage < 1:
        words = f"one lost scrape takes more than {1 - evidence.min_coverage:.0%} of a window"
        return [Outcome("warning", words, fix)]
    return []


def _wanted_ms(seen: Gathered) -> int:
    evidence = seen.policy.evidence
    wanted = int(evidence.window) * max(1 - evidence.min_coverage, 0.01)
    return max(1000, math.floor(wanted / 1000) * 1000)


def _history_ms(seen: Gathered) -> int:
    """Age of the oldest sample that was found inside the history window; -1 where none was."""
    oldest = [one.oldest_ms for one in seen.store.published if one.oldest_ms >= 0]
    return seen.store.now_ms - min(oldest) if oldest else -1


def _reach(seen: Gathered) -> list[Outcome]:
    policy, kept_ms = seen.policy, seen.store.retention_ms
    window_ms, history_ms = int(policy.evidence.window), int(policy.need.history_window)
    needed_ms = round(policy.need.min_confidence * int(policy.need.confidence_unit))
    age_ms = _history_ms(seen)
    # What is put down in words once: the first that holds is the one to mend.
    if 0 <= kept_ms < max(window_ms, needed_ms):
        words = f"samples are kept for {span(kept_ms)}, and {span(max(window_ms, needed_ms))} are needed before anything shrinks"
        return [Outcome("failed", words, f"{_RETENTION}={span(max(history_ms, needed_ms))}")]
    if history_ms < needed_ms:
        words = f"need.historyWindow is {span(history_ms)}, and {span(needed_ms)} are needed before anything shrinks"
        return [Outcome("failed", words, f"AUTOSCALER_NEED_HISTORY_WINDOW={span(needed_ms)}")]
    if age_ms < 0:
        return []
    if age_ms < needed_ms:
        words = f"history is {span(age_ms)} long: nothing shrinks for another {span(needed_ms - age_ms)}"
        return [
            Outcome("warning", words, f"wait, or lower need.minConfidence ({policy.need.min_confidence:g})")
        ]
    if 0 <= kept_ms < history_ms:
        words = f"samples are kept for {span(kept_ms)} of the {span(history_ms)} that peaks are looked for in"
        return [Outcome("warning", words, f"{_RETENTION}={span(history_ms)}")]
    return []
