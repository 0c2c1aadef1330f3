import pytest

from autoscaler.replay.baselines_horizontal import DoNothing, Hpa, Keda, PlainForecast
from autoscaler.replay.horizontal import HorizontalPolicy


def decided(policy: HorizontalPolicy, loads: list[float], replicas: int) -> list[int]:
    """The replicas after each decision, all of them ready at once."""
    held = []
    for step, load in enumerate(loads):
        replicas = policy.decide(step * 30, load, replicas, replicas)
        held.append(replicas)
    return held


def test_hpa_brings_the_use_to_its_target() -> None:
    assert decided(Hpa(0.7), [7.0], 9) == [10]
    assert decided(Hpa(0.8), [8.0], 10) == [10]


def test_hpa_cannot_see_more_than_full_use() -> None:
    assert decided(Hpa(0.5), [30.0], 10) == [20]


def test_hpa_goes_down_to_the_highest_advice_of_five_minutes() -> None:
    held = decided(Hpa(0.7), [7.0] * 5 + [2.1] * 12, 10)

    assert held[:14] == [10] * 14
    assert held[14] == 3


def test_hpa_grows_by_four_or_by_double_in_each_fifteen_seconds() -> None:
    assert decided(Hpa(0.1), [1.0], 1) == [10]
    assert Hpa(0.01)._paced(100, 1) == 10
    assert Hpa(0.01)._paced(100, 8) == 32


def test_keda_sees_a_request_rate_over_full_use() -> None:
    assert decided(Keda(0.8), [30.0], 10) == [38]
    assert decided(Keda(0.8), [8.0], 10) == [10]


def test_a_plain_forecast_follows_the_slope_of_ten_minutes() -> None:
    # half a replica an interval for four intervals, and 5 % on top
    assert decided(PlainForecast(), [step / 2 for step in range(22)], 1)[-1] == 14
    assert decided(PlainForecast(), [1.0], 1) == [2]


@pytest.mark.parametrize(("today", "expected"), [(2.0, 11), (4.0, 21), (40.0, 42), (0.1, 6)])
def test_a_plain_forecast_repeats_yesterday_by_today_s_trend_within_limits(
    today: float, expected: int
) -> None:
    yesterday = [2.0] * 40 + [10.0] * 20 + [2.0] * 2820
    loads = [*yesterday, *[today] * 38]

    assert decided(PlainForecast(), loads, 3)[-1] == expected


def test_do_nothing_keeps_the_peak_s_replicas() -> None:
    assert decided(DoNothing(), [1.0, 19.0], 3) == [20, 20]
