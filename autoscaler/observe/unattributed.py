"""Why series are given to no pod, as counts: labels that get lost show here before anybody misses a verdict."""

from collections import Counter
from typing import Final

import numpy as np

from autoscaler.observe.attribution import AMBIGUOUS, FINISHED_POD, GHOST, MISFIT, UNOWNED, Owners
from autoscaler.observe.series import ProfileSeries

_BY_CODE: Final = {GHOST: "ghost", FINISHED_POD: "finished", AMBIGUOUS: "ambiguous", MISFIT: "mistaken"}


def count_unattributed(series: ProfileSeries, owners: Owners) -> Counter[str]:
    """The profile's series that have samples in the window and are no live pod's, by a reason of `UNATTRIBUTED`."""
    counts: Counter[str] = Counter()
    for i in np.flatnonzero((owners.codes < 0) & (owners.newest_ms >= 0)).tolist():
        code = int(owners.codes[i])
        if code != UNOWNED:
            counts[_BY_CODE.get(code, "other")] += 1
        elif series.identities[i].pod:
            counts["exporter"] += 1
        else:
            counts["unowned" if owners.nodes[i] else "unknown_node"] += 1
    return counts
