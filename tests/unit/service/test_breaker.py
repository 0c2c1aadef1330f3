import math

import msgspec
from build import NOW_MS, Spec, boards, cluster, policy
from fleet_stories import units
from prometheus_client import CollectorRegistry, generate_latest
from service_fakes import RecordingLog

from autoscaler.decide import plan
from autoscaler.model.breaker import NOTHING_SEEN, FleetHealth
from autoscaler.model.evidence import UNATTRIBUTED, Telemetry
from autoscaler.observe.history.seeding import Progress
from autoscaler.service.breaker import Breaker, log_breaker
from autoscaler.service.evidence_metrics import DROPPED, EvidenceMetrics
from autoscaler.service.readiness import CheckResult, all_ready, fleet_check
from autoscaler.service.telemetry import OUTCOMES, QUERIES, Metrics

HEALTHY = FleetHealth(units=4, measured=4, seen=4)
FROZEN = FleetHealth(units=4, measured=1, seen=2, unattributed=2, frozen="dark", since_ms=1, until_ms=9)


def test_what_one_cycle_found_is_what_the_next_one_knows() -> None:
    breaker = Breaker()
    assert breaker.watch == NOTHING_SEEN
    first = breaker.decide(cluster(Spec(), telemetry={"fault": "refused"}), policy(), NOW_MS)
    assert first.fleet.health.frozen

    snapshot = msgspec.structs.replace(cluster(Spec()), watch=breaker.watch)
    second = breaker.decide(snapshot, policy(), NOW_MS + 60_000)

    assert second.fleet.health.frozen.startswith("a full window of 30m is needed after an incident")
    assert second == plan(snapshot, policy(), NOW_MS + 60_000)


def test_freezing_and_coming_free_are_logged_once_with_the_numbers() -> None:
    log = RecordingLog()
    for before, now in (
        (HEALTHY, HEALTHY),
        (HEALTHY, FROZEN),
        (FROZEN, msgspec.structs.replace(FROZEN, frozen="still")),
        (FROZEN, HEALTHY),
    ):
        log_breaker(log, before, now)  # type: ignore[arg-type]  # records instead of writing

    numbers = {"units": 4, "measured": 1, "seen": 2, "unattributed": 2, "coverage": 0.25, "attribution": 0.5}
    whole = {"units": 4, "measured": 4, "seen": 4, "unattributed": 0, "coverage": 1.0, "attribution": 1.0}
    assert log.lines == [
        ("warning", "fleet_frozen", {"because": "dark", "until_ms": 9, **numbers}),
        ("info", "fleet_free", {"frozen_since_ms": 1, **whole}),
    ]


def test_a_fleet_without_any_samples_has_no_attribution_to_log() -> None:
    log = RecordingLog()
    log_breaker(log, FleetHealth(), FleetHealth(units=1, frozen="dark"))  # type: ignore[arg-type]  # as above

    assert log.lines[0][2]["attribution"] is None


def test_a_frozen_fleet_is_degraded_and_ready() -> None:
    frozen, healthy, empty = fleet_check(FROZEN), fleet_check(HEALTHY), fleet_check(FleetHealth())

    assert frozen == CheckResult(name="fleet", ok=False, required=False, detail="frozen: dark")
    assert all_ready([frozen])
    assert healthy.detail == "4 of 4 units measured, 4 seen, attribution 100%"
    assert (empty.ok, empty.detail) == (True, "0 of 0 units measured, 0 seen")


class Scraped:
    """The evidence's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = EvidenceMetrics(self.registry, "p_")

    def value(self, metric: str, /, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"p_{metric}", labels)


def test_every_reason_and_the_breaker_have_their_series_from_the_start() -> None:
    page = Scraped()

    assert {page.value("unattributed_series", reason=reason) for reason in UNATTRIBUTED} == {0.0}
    assert {page.value("samples_dropped", reason=reason) for reason in DROPPED} == {0.0}
    assert page.value("breaker_open", name="fleet") == 0


def test_coverage_is_by_resource_and_the_breaker_opens_and_closes() -> None:
    page = Scraped()
    slices = Spec("slices", resource="nvidia.com/mig-1g.10gb", seen=(boards(0.5, device="GPU-1/1"), None))
    page.metrics.planned(plan(cluster(*units(4, dark=2), slices), policy(), NOW_MS))

    assert page.value("metric_coverage_ratio", resource="nvidia.com/gpu") == 0.5
    assert page.value("metric_coverage_ratio", resource="nvidia.com/mig-1g.10gb") == 0.5
    assert (page.value("breaker_open", name="fleet"), page.value("attribution_ratio")) == (1, 1)

    page.metrics.planned(plan(cluster(*units(4)), policy(), NOW_MS))

    assert page.value("metric_coverage_ratio", resource="nvidia.com/gpu") == 1
    assert page.value("breaker_open", name="fleet") == 0


def test_how_far_the_history_is_is_a_share_of_its_steps() -> None:
    page = Scraped()
    before = page.value("history_progress_ratio")
    page.metrics.remembered(Progress(done=3, total=12))

    assert before is not None
    assert math.isnan(before)
    assert page.value("history_progress_ratio") == 0.25

    page.metrics.remembered(Progress())
    assert math.isnan(page.value("history_progress_ratio") or 0.0)


def test_a_ratio_of_nothing_is_no_zero() -> None:
    page = Scraped()
    page.metrics.planned(plan(cluster(Spec(age_ms=0)), policy(), NOW_MS))

    coverage, attribution = (
        page.value("metric_coverage_ratio", resource="nvidia.com/gpu"),
        page.value("attribution_ratio"),
    )
    assert coverage is not None
    assert attribution is not None
    assert math.isnan(coverage)
    assert math.isnan(attribution)


def test_what_a_reading_could_not_use_is_counted_by_a_closed_list_of_reasons() -> None:
    page = Scraped()
    page.metrics.read(
        Telemetry(unattributed={"ghost": 3, "new": 1}, dropped={"negative": 2, "x": 4, "other": 1})
    )

    assert page.value("unattributed_series", reason="ghost") == 3
    assert page.value("unattributed_series", reason="other") == 1
    assert page.value("samples_dropped", reason="negative") == 2
    assert page.value("samples_dropped", reason="other") == 5

    page.metrics.read(Telemetry())
    assert page.value("unattributed_series", reason="ghost") == 0


def test_whoever_no_longer_leads_shows_no_figure_of_the_fleet() -> None:
    page = Scraped()
    page.metrics.planned(plan(cluster(*units(2, dark=2)), policy(), NOW_MS))
    page.metrics.read(Telemetry(unattributed={"ghost": 3}))
    page.metrics.forget()

    assert b"nvidia.com/gpu" not in generate_latest(page.registry)
    assert page.value("breaker_open", name="fleet") == 0
    assert page.value("unattributed_series", reason="ghost") == 0


def test_every_kind_of_query_has_its_series_before_the_first_is_asked() -> None:
    registry = Metrics(clock=lambda: 0.0).registry

    for query in QUERIES:
        for outcome in OUTCOMES:
            labels = {"query": query, "outcome": outcome}
            assert registry.get_sample_value("gpu_autoscaler_prom_queries_total", labels) == 0
