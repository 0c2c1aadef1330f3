"""What a check of the surroundings found: a row for people and scripts, with what would mend it."""

from typing import Literal

import msgspec

State = Literal["ok", "warning", "failed", "skipped"]


class Finding(msgspec.Struct, frozen=True):
    """One check: `found` has the numbers (or why it was skipped), `fix` is a command or a line of configuration."""

    id: str
    name: str
    state: State
    found: str
    fix: str = ""


class Examination(msgspec.Struct, frozen=True):
    """All checks in order; `server` and `user` say which cluster was asked and as whom (empty where unknown)."""

    findings: tuple[Finding, ...]
    server: str = ""
    user: str = ""
    store: str = ""

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the checks that failed."""
        return tuple(finding.id for finding in self.findings if finding.state == "failed")
