"""Every way in which evidence goes wrong, as functions of a case: none of them changes who is busy.

What no system could find out from series alone is not here: an exporter that swaps two pods of one node for a whole window,
with everything else about them alike, and two faults of which one removes exactly what would give the other away
(`APART`). Units about which nothing can be known any more are marked so, and count as busy for the law.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from corrupted import owner_faults, series_faults, store_faults
from corrupted.case import Case, Corruption

CORRUPTIONS: Mapping[str, Corruption] = {
    "drop_samples": series_faults.drop_samples,
    "drop_hole": series_faults.drop_hole,
    "drop_end": series_faults.drop_end,
    "bad_values": series_faults.bad_values,
    "freeze": series_faults.freeze,
    "two_exporters": owner_faults.two_exporters,
    "two_stores": owner_faults.two_stores,
    "lose_labels": owner_faults.lose_labels,
    "swap_labels": owner_faults.swap_labels,
    "move_slices": owner_faults.move_slices,
    "reset_counters": series_faults.reset_counters,
    "skew_clocks": store_faults.skew_clocks,
    "rename_pods": owner_faults.rename_pods,
    "empty_answers": store_faults.empty_answers,
    "warnings": store_faults.warnings,
    "errors": store_faults.errors,
    "unowned_busy": owner_faults.unowned_busy,
    "zero_profiling": series_faults.zero_profiling,
}

APART: tuple[frozenset[str], ...] = (
    frozenset({"zero_profiling", "empty_answers"}),
    frozenset({"freeze", "empty_answers"}),
)
"""Pairs of which one removes exactly the signal that gives the other away."""


def corrupt(case: Case, draw: Random) -> Case:
    """The case with one to three corruptions."""
    wanted = draw.choice((1, 1, 2, 3))
    names = list(CORRUPTIONS)
    draw.shuffle(names)
    for name in names:
        if len(case.names) == wanted:
            break
        if any(pair <= {*case.names, name} for pair in APART):
            continue
        found = CORRUPTIONS[name](case, draw)
        if found is not None:
            case = replace(found, names=(*found.names, name))
    return case
