"""What a refused or unanswered request means for an act."""

from autoscaler.act.contract import Outcome
from autoscaler.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedBody,
    Unreachable,
)
from autoscaler.model.reasons import Reason

_NEVER_SENT = frozenset({"refused", "dns", "tls"})


def classify(error: KubeError) -> Outcome:
    """The outcome of an act whose request ended in an error: `unknown` wherever it may have been carried out."""
    words = str(error)
    if _is_gone(error):
        return Outcome("gone", words)
    match error:
        case Conflict():
            return Outcome("conflict", words)
        case Invalid():
            return Outcome("refused", words, Reason.NO_LEVER)
        case Forbidden() if "exceeded quota" in error.message:
            return Outcome("refused", words, Reason.QUOTA_SHORT)
        case Forbidden() | Unauthorized():
            return Outcome("refused", words, Reason.FORBIDDEN)
        case TooManyRequests():
            # The words that a person needs are in the cause: which budget, and how many healthy pods it misses.
            causes = "; ".join(cause.message for cause in error.causes)
            reason = Reason.DISRUPTION_BUDGET if error.from_disruption_budget else None
            return Outcome("refused", causes or words, reason, retry_after_s=error.retry_after_s)
        case ServerError() if "more than one PodDisruptionBudget" in error.message:
            # The Eviction API answers 500, for ever, for a pod that several budgets select.
            return Outcome("refused", words, Reason.DISRUPTION_BUDGET)
        case Unreachable() if error.reason in _NEVER_SENT:
            return Outcome("refused", words)
        case Unreachable() | ServerError() | UnexpectedBody():
            return Outcome("unknown", words)
        case _:
            return Outcome("refused", words)


def nothing_taken(error: KubeError) -> Outcome:
    """The outcome of an act that failed before it was sent: nothing was taken, whatever became of that request."""
    found = classify(error)
    return Outcome("refused", found.detail) if found.kind == "unknown" else found


def not_prepared(error: KubeError) -> Outcome:
    """The outcome of an act whose preparation failed: a pod that it counted on has gone or has been placed."""
    found = nothing_taken(error)
    moved_on = found.kind == "gone" or isinstance(error, Invalid)
    return Outcome("conflict", found.detail) if moved_on else found


def _is_gone(error: KubeError) -> bool:
    """Whether another object bears the name, or none.

    A wrong uid is a 422 about `metadata.uid` for a patch of an object, and a 409 that speaks of the precondition for a
    scale and for an eviction.
    """
    match error:
        case NotFound():
            return True
        case Conflict():
            return "precondition" in error.message and "UID" in error.message
        case Invalid():
            return any(cause.field == "metadata.uid" for cause in error.causes)
        case _:
            return False
