"""What we did, when, why and how to put it back: one entry for each workload, kept in our own namespace.

An act is written down before it is sent (`intended`), again when the server accepted it (`acted`), and once it
has proved itself (`verified`) or ended otherwise. Whoever leads next reads the entries and knows what is half-done.
"""

from typing import Final, Literal

import msgspec

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.duration import Instant
from autoscaler.model.plan import Action, Lever, ThroughRef, written_object

VERSION: Final = 1
RECORDS_KEPT: Final = 20
"""Per entry; open records are never dropped."""

State = Literal["intended", "acted", "verified", "failed", "undone", "dropped", "superseded", "gone"]
Actor = Literal["service", "apply", "revert", "undo"]
OPEN: Final[frozenset[State]] = frozenset({"intended", "acted"})


Fate = Literal["held", "waiting", "used", "taken-back", "cordoned", "node-removed"]
FATES: Final[tuple[Fate, ...]] = ("waiting", "used", "taken-back", "cordoned", "node-removed")
"""What can become of a freed board."""


class Freed(msgspec.Struct, frozen=True):
    """Boards on one node that an act was to free, and what became of them.

    `held` by the workload just before the act; once it is verified: `waiting` free on the node, `used` by the workload
    `by`, `taken-back` by the workload itself, on a `cordoned` node, or gone with it (`node-removed`). It has been so
    since `at_ms`. `kept` is what the workload still held there when the act was verified.
    """

    node: str
    boards: int
    fate: Fate
    by: WorkloadRef | None = None
    kept: int = 0
    at_ms: Instant = -1


class Record(msgspec.Struct, frozen=True):
    """One act.

    States: `intended` written down, perhaps sent; `acted` accepted by the server; `verified` healthy through its
    probation; `failed` verification failed (a record of actor `revert` follows); `undone` put back by a person before it
    was verified; `dropped` never sent, or refused by the server; `superseded` somebody else set another value; `gone` the target no longer exists.
    Until `settle_ms` a request of it may still be under way. `ready_ms` is when its pods were ready. `term` is the
    leader's, 0 for a person's. `undoes` is the id of the record that this one puts back, where it is one.
    `freed` is what became of the boards, empty where none were held.
    """

    id: str
    action: Action
    state: State
    actor: Actor
    intended_ms: Instant
    settle_ms: Instant
    term: int = 0
    acted_ms: Instant = -1
    ready_ms: Instant = -1
    closed_ms: Instant = -1
    detail: str = ""
    undoes: str = ""
    freed: tuple[Freed, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether its end is not known yet."""
        return self.state in OPEN


class Change(msgspec.Struct, frozen=True):
    """A field that holds a value of ours: what its owner had there before our first act, and what we set last.

    `resource` and `container` are empty for replicas; what was changed through another object names that
    (1 is active). It may be put back only while the live value is `current`.
    """

    lever: Lever
    original: int
    current: int
    resource: str = ""
    container: str = ""
    through: ThroughRef | None = None

    @property
    def field(self) -> str:
        """The field, in words."""
        if self.through is not None:
            return self.through.field
        return f"{self.resource} of container {self.container}" if self.container else "replicas"


class Entry(msgspec.Struct, frozen=True):
    """Everything about one workload, by uid.

    `records` are oldest first. `reversals` counts how often others put our change back, `failures` how often
    verification failed in a row. Before `not_before_ms` it is left alone, `why` says for what reason.
    """

    ref: WorkloadRef
    uid: str
    records: tuple[Record, ...] = ()
    changes: tuple[Change, ...] = ()
    reversals: int = 0
    failures: int = 0
    not_before_ms: Instant = -1
    why: str = ""
    version: int = VERSION

    def written(self, change: Change) -> tuple[WorkloadRef, str]:
        """The object that holds a value of ours, and its uid."""
        return written_object(self.ref, self.uid, change.through)

    @property
    def open_record(self) -> Record | None:
        """The act whose end is not known yet; there is at most one."""
        return next((record for record in self.records if record.is_open), None)
