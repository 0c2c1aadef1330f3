"""What this room is handed and what it hands back.

It decides nothing: whether an act is still right is asked of a `Recheck`, whether it may be sent at all of an
`Authority`, both handed in. Every request that changes anything has a `Site`, so that a test can stop the process
before and after each of them.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from autoscaler.kube.session import WriteVerb
from autoscaler.model.ledger import Record
from autoscaler.model.plan import Action, Refusal
from autoscaler.model.reasons import Reason


class AuthorityLostError(Exception):
    """The right to write ended: the lease ran out or went to somebody else, or the service is stopping."""


class Authority(Protocol):
    """The right to write, for as long as it lasts."""

    @property
    def term(self) -> int:
        """The leader's term, larger with each change of leader; 0 for a person's command."""

    @property
    def holder(self) -> str:
        """Who writes, for the ledger."""

    def remaining_s(self) -> float:
        """Seconds for which a request may still be under way; raises `AuthorityLostError` when there are none."""


class Api(Protocol):
    """One API server, as `KubeSession` offers it; errors are its typed ones."""

    async def get_json(
        self,
        path: str,
        params: Mapping[str, str] | None,
        decoder: msgspec.json.Decoder[Any],
        *,
        retry: bool = True,
        timeout_s: float | None = None,
    ) -> Any:
        """The decoded answer to a GET."""

    async def write(  # noqa: PLR0913 - the session's own signature
        self,
        verb: WriteVerb,
        path: str,
        body: object,
        decoder: msgspec.json.Decoder[Any],
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> Any:
        """The decoded answer to a changing request, sent once; what `before_send` raises ends it with nothing sent."""


class Site(StrEnum):
    """Every place a changing request is sent from."""

    FENCE = "fence"
    LEDGER_INTENT = "ledger-intent"
    LEDGER_OUTCOME = "ledger-outcome"
    DRY_RUN = "dry-run"
    NOMINATE = "nominate"
    UNNOMINATE = "unnominate"
    DELETION_COST = "deletion-cost"
    CLEAR_DELETION_COST = "clear-deletion-cost"
    CHANGE = "change"
    EVICT = "evict"
    EVICT_STUCK = "evict-stuck"
    DISOWN = "disown"


Probe: TypeAlias = Callable[[Site, Literal["before", "after"]], None]
"""Called around every changing request; a test's probe may end the process there."""

Recheck: TypeAlias = Callable[[Action], Awaitable[Action | Refusal]]
"""The guards again, on the state of this moment: the action as it would be planned now, or why it would not be."""

Kind = Literal["done", "refused", "conflict", "gone", "unknown"]


class Outcome(msgspec.Struct, frozen=True):
    """How an act ended.

    `done`; `refused` with a reason; `conflict`: the object changed, think again; `gone`: the target is no longer
    there; `unknown`: sent and not answered, the ledger says so and the next look settles it.
    `retry_after_s` is what the server asked for. `record` is the ledger's, None where nothing was written.
    """

    kind: Kind
    detail: str = ""
    reason: Reason | None = None
    record: Record | None = None
    retry_after_s: float | None = None
