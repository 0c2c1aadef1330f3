"""Series as the text that promtool reads."""

import pytest

from devcluster.backfill import Series, openmetrics
from devcluster.errors import DevclusterError

pytestmark = pytest.mark.unit


def test_each_sample_is_a_line_with_its_time_in_seconds_and_the_text_ends_with_its_mark() -> None:
    series = Series("DCGM_FI_DEV_GPU_UTIL", {"gpu": "0", "UUID": "GPU-a"}, [(1_000, 1.0), (16_000, 0.5)])

    assert "".join(openmetrics([series])) == (
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",gpu="0"} 1.0 1.000\n'
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",gpu="0"} 0.5 16.000\n'
        "# EOF\n"
    )


def test_label_values_are_escaped_and_empty_labels_are_none() -> None:
    series = Series("up", {"pod": 'a"b\\c\nd', "namespace": ""}, [(0, 1.0)])

    assert "".join(openmetrics([series])) == 'up{pod="a\\"b\\\\c\\nd"} 1.0 0.000\n# EOF\n'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "NaN"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (9_223_372_036_854_775_794.0, "9.223372036854776e+18"),
        (912_331_004_410.0, "912331004410.0"),
    ],
)
def test_values_keep_what_they_are(value: float, text: str) -> None:
    assert "".join(openmetrics([Series("m", {}, [(0, value)])])) == f"m {text} 0.000\n# EOF\n"


@pytest.mark.parametrize("times", [(1, 1), (2, 1)])
def test_samples_out_of_order_are_an_error_since_promtool_drops_them_in_silence(
    times: tuple[int, int],
) -> None:
    with pytest.raises(DevclusterError, match="the samples of m are not in the order of time"):
        list(openmetrics([Series("m", {}, [(at, 1.0) for at in times])]))
