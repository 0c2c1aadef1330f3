"""What owners state about their workloads: allowed counts, a floor of replicas, a role.

A statement may stand on the namespace, the workload or its pods, as an annotation or as a label.
Where several are made the strictest holds, and one that cannot be read withholds consent.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from autoscaler.decide.marks import ALLOWED_GPUS, MIN_GPUS, MIN_REPLICAS, MODE, ROLE, ROLES
from autoscaler.model.plan import Role
from autoscaler.model.policy import Mode
from autoscaler.model.policy_sections import MODES

Carrier: TypeAlias = tuple[str, Mapping[str, str]]
"""A place in words (empty for the workload itself) and its annotations or labels."""

_OURS: Final = frozenset({ALLOWED_GPUS, MIN_GPUS, MIN_REPLICAS, MODE, ROLE})


@dataclass(frozen=True, slots=True)
class Statement:
    """An owner's statement of whole numbers: `values` if readable, else `fault` says why not."""

    values: tuple[int, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class RoleStatement:
    """The role that an owner states, or the most careful one where the text is not a role, and where it stands."""

    role: Role
    cause: str


@dataclass(frozen=True, slots=True)
class ModeStatement:
    """The most that an owner lets be done, or observe where the text is no mode, and where it stands."""

    mode: Mode
    cause: str


@dataclass(frozen=True, slots=True)
class Statements:
    """All that is stated for one workload, each None where nothing is."""

    allowed: Statement | None = None
    least: Statement | None = None
    floor: Statement | None = None
    role: RoleStatement | None = None
    mode: ModeStatement | None = None


def read_statements(carriers: Iterable[Carrier]) -> Statements:
    """The strictest reading: counts that every statement allows, the highest floors, the most careful role, the least mode."""
    found = [carrier for carrier in carriers if not _OURS.isdisjoint(carrier[1])]
    roles = [role for place, texts in found if (role := stated_role(texts, place=place))]
    modes = [mode for place, texts in found if (mode := stated_mode(texts, place=place))]
    return Statements(
        allowed=_allowed([s for place, texts in found if (s := allowed_counts(texts, place=place))]),
        least=_floor([s for place, texts in found if (s := whole_number(MIN_GPUS, texts, place=place))]),
        floor=_floor([s for place, texts in found if (s := whole_number(MIN_REPLICAS, texts, place=place))]),
        role=min(roles, key=lambda role: _CAUTION[role.role], default=None),
        mode=min(modes, key=lambda mode: MODES.index(mode.mode), default=None),
    )


_CAUTION: Final[dict[Role, int]] = {"training": 0, "interactive": 1, "serving": 2}


def allowed_counts(texts: Mapping[str, str], *, place: str = "") -> Statement | None:
    """The counts of boards per unit that the owner consents to, ascending; None where nothing is stated."""
    text = texts.get(ALLOWED_GPUS)
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,4}", part) and int(part) > 0 for part in parts):
        return Statement(fault=f"{ALLOWED_GPUS}{place} is not a list of counts over 0: {text[:40]!r}")
    return Statement(values=tuple(sorted({int(part) for part in parts})))


def whole_number(key: str, texts: Mapping[str, str], *, place: str = "") -> Statement | None:
    """The floor that the owner states under a key; None where nothing is stated."""
    text = texts.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text.strip()):
        return Statement(fault=f"{key}{place} is not a whole number: {text[:40]!r}")
    return Statement(values=(int(text),))


def stated_mode(texts: Mapping[str, str], *, place: str = "") -> ModeStatement | None:
    """The most that the owner lets be done; observe, which does the least, for a text that is no mode."""
    text = texts.get(MODE)
    if text is None:
        return None
    known = next((mode for mode in MODES if mode == text.strip().lower()), None)
    cause = f"{MODE}={text[:40]}{place}"
    return ModeStatement(known, cause) if known else ModeStatement("observe", f"{cause} (unreadable)")


def stated_role(texts: Mapping[str, str], *, place: str = "") -> RoleStatement | None:
    """The role that the owner states; training, which allows the least, for a text that is not one."""
    text = texts.get(ROLE)
    if text is None:
        return None
    known = next((role for role in ROLES if role == text.strip().lower()), None)
    cause = f"{ROLE}={text[:40]}{place}"
    return RoleStatement(known, cause) if known else RoleStatement("training", f"{cause} (unreadable)")


def _allowed(stated: Sequence[Statement]) -> Statement | None:
    if not stated:
        return None
    fault = _fault(stated)
    if fault:
        return Statement(fault=fault)
    common = set(stated[0].values).intersection(*(statement.values for statement in stated))
    if not common:
        return Statement(fault=f"its statements of {ALLOWED_GPUS} have no count in common")
    return Statement(values=tuple(sorted(common)))


def _floor(stated: Sequence[Statement]) -> Statement | None:
    if not stated:
        return None
    fault = _fault(stated)
    return Statement(fault=fault) if fault else Statement(values=(max(s.values[0] for s in stated),))


def _fault(stated: Sequence[Statement]) -> str:
    return next((statement.fault for statement in stated if statement.fault), "")
