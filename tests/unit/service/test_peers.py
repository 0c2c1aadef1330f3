import pytest

from autoscaler.model.duration import Duration
from autoscaler.model.policy import policy_from_dict
from autoscaler.service.faults import ConfigError
from autoscaler.service.peers import prometheus_client, query_name, require_live, spans_of
from autoscaler.service.settings import load_settings


@pytest.mark.parametrize(
    ("promql", "name"),
    [
        ("time()", "time"),
        ("max by (pod) (max_over_time(DCGM_FI_DEV_GPU_UTIL[30m]))", "max_over_time"),
        ("max by (uptime, pod) (quantile_over_time(0.95, x[1d]))", "quantile_over_time"),
        ("max by (pod) (timestamp(x) or max_over_time(timestamp(x)[1m:1s]))", "timestamp"),
        ("count by (pod) (x)", "count"),
        ("my_time_metric", "other"),
    ],
)
def test_queries_are_counted_under_their_function_and_never_their_text(promql: str, name: str) -> None:
    assert query_name(promql) == name


def test_spans_are_plain_numbers_since_durations_print_with_units() -> None:
    spans = spans_of(policy_from_dict({"evidence": {"window": "10m"}, "need": {"historyWindow": "2d"}}))

    assert (spans.window_ms, spans.history_ms) == (600_000, 2 * 86_400_000)
    assert not isinstance(spans.window_ms, Duration)


def test_a_live_cluster_needs_a_metrics_store() -> None:
    with pytest.raises(ConfigError, match="AUTOSCALER_PROMETHEUS_URL is not set"):
        require_live(load_settings({}))


async def test_a_store_with_two_credentials_is_a_configuration_error_without_either() -> None:
    environment = {
        "AUTOSCALER_PROMETHEUS_URL": "http://me:canary@prom:9090",
        "AUTOSCALER_PROMETHEUS_HEADERS": "Authorization=Bearer canary",
    }
    with pytest.raises(ConfigError, match="the metrics store's settings: more than one of") as caught:
        await prometheus_client(load_settings(environment))

    assert "canary" not in str(caught.value)
