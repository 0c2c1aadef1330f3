"""The backtest as one HTML file that needs nothing else: it can be mailed, and opened years later without a network."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from autoscaler.model.backtest import (
    HorizontalReport,
    HorizontalRow,
    PodOutcome,
    ReplicaLine,
    VerticalReport,
    VerticalRow,
)
from autoscaler.ui.backtest_plot import Mark, decisions, frontier, is_ours, replicas
from autoscaler.ui.escape import printable

PODS_SHOWN: Final = 60
"""Pods of the drill-down: those over which the policies differ most."""
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --line: #d8dee4; --load: #b6c2cf;
  --ours: #0a6cd6; --other: #6e5494; --bad: #c9302c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9aa4af; --paper: #14181d; --line: #333a42; --load: #46515d;
  --ours: #5eaaff; --other: #bd9cf0; --bad: #ff7b72; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 1180px; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
th { color: var(--dim); font-weight: 600; vertical-align: bottom; }
tr.ours td { font-weight: 600; color: var(--ours); } td.bad { color: var(--bad); }
.scroll { overflow-x: auto; } .plots { display: flex; flex-wrap: wrap; gap: 1rem; } .plots svg { flex: 1 1 480px; max-width: 580px; }
svg text { fill: var(--ink); font-size: 11px; } svg .tick, svg .axis { fill: var(--dim); } svg .grid { stroke: var(--line); }
svg circle.ours { fill: var(--ours); } svg circle.other { fill: var(--other); } svg path.broken { stroke: var(--bad); stroke-width: 2; fill: none; }
svg path.ours { stroke: var(--ours); stroke-width: 2; fill: none; } svg path.other { stroke: var(--other); stroke-width: 1.5; fill: none; }
svg text.ours { fill: var(--ours); font-weight: 600; } svg text.broken { fill: var(--bad); }
svg .load { fill: var(--load); } svg .memory { stroke: var(--dim); fill: none; stroke-dasharray: 3 2; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; } .dim { color: var(--dim); }
"""
_VERTICAL_HEADS: Final = (
    "policy",
    "% of oracle",
    "freed %",
    "lost %",
    "out of memory",
    "blind",
    "wrong per 1,000 pod-hours",
    "restarts per pod-day",
    "cold starts per pod-day",
)
_HORIZONTAL_HEADS: Final = ("policy", "replica-hours x oracle", "unserved %", "acts per hour")
_LOST_BROKEN_PCT: Final = 5.0
"""From here on a policy is drawn as broken: it saves by not serving."""


def vertical_page(report: VerticalReport) -> str:
    """Frontier, table and drill-down of a vertical backtest."""
    first = report.rows[0] if report.rows else None
    board = first.board_gib if first else 0.0
    gaps = ", a tenth of the samples hidden in holes of 20 minutes" if first and first.gaps else ""
    lead = (
        f"{report.pods} pods, {report.pod_hours:,.0f} pod-hours, boards of {board:g} GiB{gaps}. A clairvoyant oracle frees "
        f"{report.oracle_freed_pct:g} % of the held time; {report.ceiling_pct:g} % of that if nothing may change within an hour. "
        "A cross is a policy that ran pods out of memory or left demand unserved."
    )
    return _page(
        "Backtest: slices and idle boards",
        [
            f"<p>{_text(lead)}</p>",
            '<div class="plots">',
            _vertical_frontier(report.rows, "wrong"),
            _vertical_frontier(report.rows, "lost"),
            "</div>",
            _table(_VERTICAL_HEADS, (_vertical_cells(row) for row in report.rows)),
            *_drill_down(report, board),
        ],
    )


def horizontal_page(report: HorizontalReport) -> str:
    """Frontier, table and drawing of a horizontal backtest, service by service."""
    services: defaultdict[str, list[HorizontalRow]] = defaultdict(list)
    lines: defaultdict[str, list[ReplicaLine]] = defaultdict(list)
    for row in report.rows:
        services[row.service].append(row)
    for line in report.lines:
        lines[line.service].append(line)
    parts = [
        "<p>Replica-hours are multiples of what an oracle needs that knows the load of the next two minutes.</p>",
        '<p class="dim">Grey: the load in replicas. The line over it: the replicas that the policy requested.</p>',
    ]
    for service, rows in services.items():
        parts += _service(service, rows, lines[service])
    return _page("Backtest: replicas", parts)


def _service(service: str, rows: Sequence[HorizontalRow], lines: Sequence[ReplicaLine]) -> list[str]:
    marks = [
        Mark(
            name=row.policy,
            harm=row.unserved_pct,
            saved=max(0.0, round(100 * (2 - row.replica_hours_x_oracle), 1)),
            broken=f"{row.unserved_pct:.0f} % unserved" if row.unserved_pct >= _LOST_BROKEN_PCT else "",
        )
        for row in rows
    ]
    plot = frontier(
        marks,
        harm_axis="% of requests unserved",
        saved_axis="replica-hours: 100 as the oracle, 0 twice as many",
        saved_top=100,
        least_power=-4,
    )
    parts = [
        f"<h2>{_text(service)}</h2>",
        f'<div class="plots">{plot}</div>',
        _table(_HORIZONTAL_HEADS, (_horizontal_cells(row) for row in rows)),
    ]
    if lines:
        parts.append(
            f'<details><summary>{_text(service)}: {lines[0].hours:.0f} h</summary><div class="scroll">{replicas(lines)}</div></details>'
        )
    return parts


def _horizontal_cells(row: HorizontalRow) -> tuple[str, list[tuple[str, bool]]]:
    return row.policy, [
        (f"{row.replica_hours_x_oracle:.3f}", False),
        (f"{row.unserved_pct:.3f}", row.unserved_pct >= _LOST_BROKEN_PCT),
        (f"{row.acts_per_hour:.2f}", False),
    ]


def _vertical_frontier(rows: Iterable[VerticalRow], harm: str) -> str:
    marks = [
        Mark(
            name=row.policy,
            harm=row.wrong_per_1000_pod_hours if harm == "wrong" else row.lost_pct,
            saved=row.oracle_pct,
            broken=_broken(row),
        )
        for row in rows
    ]
    axis = "wrong shrinks per 1,000 pod-hours" if harm == "wrong" else "% of demand lost"
    return frontier(marks, harm_axis=axis, saved_axis="% of the oracle's saving", saved_top=100)


def _broken(row: VerticalRow) -> str:
    if row.lost_pct >= _LOST_BROKEN_PCT:
        return f"{row.lost_pct:.0f} % lost"
    return f"{row.oom} OOM" if row.oom else ""


def _vertical_cells(row: VerticalRow) -> tuple[str, list[tuple[str, bool]]]:
    return row.policy, [
        (f"{row.oracle_pct:.1f}", False),
        (f"{row.freed_pct:.2f}", False),
        (f"{row.lost_pct:.3f}", row.lost_pct >= _LOST_BROKEN_PCT),
        (str(row.oom), row.oom > 0),
        (str(row.blind), row.blind > 0),
        (f"{row.wrong_per_1000_pod_hours:.1f}", False),
        (f"{row.restarts_per_pod_day:.2f}", False),
        (f"{row.cold_starts_per_pod_day:.2f}", False),
    ]


def _drill_down(report: VerticalReport, board_gib: float) -> list[str]:
    """One fold a pod; those with most wrong acts and widest differences first."""
    if not report.loads:
        return []
    by_pod: defaultdict[str, list[PodOutcome]] = defaultdict(list)
    for outcome in report.outcomes:
        by_pod[outcome.pod].append(outcome)
    for outcomes in by_pod.values():
        outcomes.sort(key=lambda outcome: not is_ours(outcome.policy))
    loads = sorted(report.loads, key=lambda load: (-_interest(by_pod[load.pod]), load.pod))
    steps = 1 + max(load.last_step for load in loads)
    left_out = len(loads) - PODS_SHOWN
    parts = ["<h2>Pod by pod</h2>"]
    parts.append(
        '<p class="dim">Grey: the load as a share of a board. Dashed: memory. The line over it: what the policy let the pod hold; '
        f"at the bottom it was released.{f' {left_out} pods with less to see are left out.' if left_out > 0 else ''}</p>"
    )
    for number, load in enumerate(loads[:PODS_SHOWN]):
        shown = by_pod[load.pod]
        summary = f"{load.pod}: {(load.last_step - load.first_step + 1) * report.step_s / 3600:.1f} h"
        told = "; ".join(
            f"{one.policy} frees {one.freed_pct:.0f} %, {one.wrong} wrong"
            for one in shown
            if is_ours(one.policy)
        )
        parts.append(
            f'<details><summary>{_text(summary)} <span class="dim">{_text(told)}</span></summary><div class="scroll">'
            f"{decisions(load, shown, steps=steps, board_gib=board_gib, key=str(number))}</div></details>"
        )
    return parts


def _interest(outcomes: Sequence[PodOutcome]) -> float:
    freed = [outcome.freed_pct for outcome in outcomes] or [0.0]
    own = [outcome for outcome in outcomes if is_ours(outcome.policy)]
    return 100 * sum(outcome.wrong + outcome.oom for outcome in own) + max(freed) - min(freed)


def _table(heads: Sequence[str], rows: Iterable[tuple[str, list[tuple[str, bool]]]]) -> str:
    parts = [
        '<div class="scroll"><table><thead><tr>',
        *(f"<th>{_text(head)}</th>" for head in heads),
        "</tr></thead><tbody>",
    ]
    for policy, cells in rows:
        parts.append(f'<tr class="{"ours" if is_ours(policy) else "other"}"><td>{_text(policy)}</td>')
        parts += [f'<td class="bad">{value}</td>' if bad else f"<td>{value}</td>" for value, bad in cells]
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    return "".join(parts)


def _page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{_text(title)}</h1>\n{body}\n</body></html>\n"
    )


def _text(words: str) -> str:
    return escape(printable(words))
