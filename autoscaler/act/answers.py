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
from autoscaler.model.plan import Lever
from autoscaler.model.reasons import Reason

_NEVER_SENT = frozenset({"refused", "dns", "tls"})


def classify(error: KubeError, lever: Lever) -> Outcome:
    """The outcome of an act whose request ended in an error: `unknown` wherever it may have been carried out."""
    words = str(error)
    if _is_gone(error, lever):
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
            reason = Reason.DISRUPTION_BUDGET if error.from_disruption_budget else None
            return Outcome("refused", words, reason, retry_after_s=error.retry_after_s)
        case ServerError() if "PodDisruptionBudget" in error.message:
            # The Eviction API answers 500, for ever, for a pod that several budgets select.
            return Outcome("refused", words, Reason.DISRUPTION_BUDGET)
        case Unreachable() if error.reason in _NEVER_SENT:
            return Outcome("refused", words)
        case Unreachable() | ServerError() | UnexpectedBody():
            return Outcome("unknown", words)
        case _:
            return Outcome("refused", words)


def _is_gone(error: KubeError, lever: Lever) -> bool:
    """Another object bears the name, or none; an eviction carries no version, so its only precondition is the uid."""
    match error:
        case NotFound():
            return True
        case Conflict():
            return lever == "evict"
        case Invalid():
            return "uid" in error.message.lower()
        case _:
            return False
