"""Freeze windows: times in which an operator wants nothing changed."""

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.freeze import in_words
from autoscaler.model.reasons import Reason


def guard_freeze(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """No change of this kind in this namespace, nor for this namespace, while a window is open; the one that is open longest is told."""
    del tally
    name, spaces = "freeze", {judged.case.workload.ref.namespace, proposal.given_to}
    held = [
        (until_ms, window)
        for window, until_ms in world.frozen
        if (not window.methods or proposal.method in window.methods)
        and (not window.namespaces or spaces & set(window.namespaces))
    ]
    if not held:
        return Ruling(name, "no freeze window is open" if world.policy.freeze.windows else "no freeze window")
    until_ms, window = max(held, key=lambda one: one[0])
    return Ruling(name, in_words(window, until_ms), Reason.FREEZE_WINDOW)
