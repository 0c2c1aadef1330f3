"""Numbers as people read them; one spelling for every view."""

from datetime import UTC, datetime

from autoscaler.model.plan import Action, ExplainRow, Need

_LAST_MS = 253_402_300_800_000
"""The year 10000, which the calendar in use does not have."""
UNKNOWN = "-"
"""No figure: never a zero."""


def boards(milli: int) -> str:
    """Milli-boards as boards: "1.25", "2"."""
    return f"{milli / 1000:.2f}".rstrip("0").rstrip(".")


def share(ratio: float | None) -> str:
    """A ratio in percent: "12 %"; a dash where it is not known."""
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"


def need_range(need: Need | None) -> str:
    """Lower, target and upper bound of one unit's need."""
    return (
        UNKNOWN if need is None else "/".join(boards(part) for part in (need.lower, need.target, need.upper))
    )


def moment(time_ms: int) -> str:
    """A time in UTC; as the number where no calendar has it (a snapshot file may say anything)."""
    if not 0 <= time_ms < _LAST_MS:
        return f"{time_ms} ms"
    return datetime.fromtimestamp(time_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def change(action: Action) -> str:
    """What an action changes, before and after."""
    noun = "replicas" if action.lever == "scale" else "boards per pod"
    return f"{noun} {action.before} -> {action.after}"


def decision(row: ExplainRow) -> str:
    """The row's outcome in a few words."""
    if row.action is None:
        return f"left alone: {row.reason}"
    held = ", ".join(row.action.held_by)
    return f"{change(row.action)} ({row.action.reason}{f'; held by {held}' if held else ''})"
