"""The live view: header, workloads, plan and refusals, drawn from the plan that the service serves."""

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from autoscaler.model.duration import format_duration
from autoscaler.model.plan import Plan
from autoscaler.ui import tables


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the header states beside the plan."""

    api_server_url: str
    prometheus_url: str
    service_url: str
    elapsed_s: float


def frame(plan: Plan | None, facts: Facts, readiness: str) -> RenderableType:
    """One picture of the run; while there is no plan, what the service waits for."""
    header = [
        ("demo clock", format_duration(round(facts.elapsed_s) * 1000)),
        ("API server", facts.api_server_url),
        ("Prometheus", facts.prometheus_url),
        ("service", facts.service_url),
    ]
    if plan is None:
        lines = [f"{name} {value}" for name, value in header]
        return Group(Text("  ".join(lines)), Text(), Text("waiting for the first plan:"), Text(readiness))
    return Group(
        tables.fleet_header(plan, header),
        Text(),
        tables.workload_table(plan.rows),
        Text(),
        tables.plan_table(plan),
        Text(),
        tables.refusal_table(plan),
    )
