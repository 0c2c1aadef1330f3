"""What the plan of a scenario must say, and the difference to what it says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autoscaler.model.plan import ExplainRow
from devcluster.errors import DevclusterError


@dataclass(frozen=True)
class Expected:
    """One workload's outcome; `before` and `after` only where a change is expected."""

    reason: str
    before: int | None = None
    after: int | None = None

    def __str__(self) -> str:
        return self.reason if self.before is None else f"{self.reason} {self.before} -> {self.after}"


def load_expectation(path: Path) -> dict[str, Expected]:
    """Outcomes by `namespace/name`."""
    document: Any = yaml.safe_load(path.read_text())
    try:
        return {name: Expected(**fields) for name, fields in document.items()}
    except (AttributeError, TypeError) as error:
        raise DevclusterError(f"{path.name} is no expectation: {error}") from error


def outcome_of(row: ExplainRow) -> Expected:
    """What a row says."""
    if row.action is None:
        return Expected(row.reason.value)
    return Expected(row.reason.value, row.action.before, row.action.after)


def differences(rows: Iterable[ExplainRow], expected: Mapping[str, Expected]) -> list[str]:
    """One line for each workload that is missing, unexpected or judged otherwise; empty where all is as expected."""
    found = {str(row.workload): (outcome_of(row), row.detail) for row in rows}
    lines = [f"{name}: not in the plan" for name in sorted(expected.keys() - found.keys())]
    lines += [f"{name}: not expected, is {found[name][0]}" for name in sorted(found.keys() - expected.keys())]
    for name in sorted(found.keys() & expected.keys()):
        outcome, detail = found[name]
        if outcome != expected[name]:
            lines.append(f"{name}: expected {expected[name]}, is {outcome} ({detail})")
    return lines
