"""The twelve checks in their order; each is a pure function of what was gathered."""

from collections.abc import Callable
from typing import Final, TypeAlias

from autoscaler.model.findings import Examination, Finding
from autoscaler.service.doctor.attribution import check_attribution
from autoscaler.service.doctor.devices import check_devices
from autoscaler.service.doctor.gathered import Gathered
from autoscaler.service.doctor.horizon import check_horizon
from autoscaler.service.doctor.monitors import check_monitors
from autoscaler.service.doctor.outcome import Outcome
from autoscaler.service.doctor.ownership import check_owners
from autoscaler.service.doctor.permissions import check_permissions
from autoscaler.service.doctor.reach import check_budgets, check_reach
from autoscaler.service.doctor.store_checks import check_series, check_store
from autoscaler.service.doctor.timing import check_clocks, check_lease

Check: TypeAlias = Callable[[Gathered], Outcome]

CHECKS: Final[tuple[tuple[str, str, Check], ...]] = (
    ("D1", "metrics store", check_store),
    ("D2", "GPU series", check_series),
    ("D3", "pods have series", check_attribution),
    ("D4", "one count per device", check_devices),
    ("D5", "interval and retention", check_horizon),
    ("D6", "rights", check_permissions),
    ("D7", "other owners", check_owners),
    ("D8", "monitors selected", check_monitors),
    ("D9", "clocks", check_clocks),
    ("D10", "lease", check_lease),
    ("D11", "disruption budgets", check_budgets),
    ("D12", "out of reach", check_reach),
)


def examine(seen: Gathered) -> Examination:
    """Every check's finding, in order."""
    findings = []
    for number, name, check in CHECKS:
        outcome = check(seen)
        findings.append(
            Finding(id=number, name=name, state=outcome.state, found=outcome.found, fix=outcome.fix)
        )
    shown = str(seen.settings.effective()["prometheus_url"])
    return Examination(
        findings=tuple(findings), server=seen.server.server, user=seen.server.user, store=shown
    )
