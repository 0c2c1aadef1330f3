import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observe.exposition import BadLine, Sample, parse_exposition
from tests.fixtures.objects import EXPORTERS, exporter_text

pytestmark = pytest.mark.unit


def test_a_line_is_a_metric_with_labels_and_a_value() -> None:
    text = '# HELP up Whether.\n# TYPE up gauge\nup{a="b",c="d e"} 1.5\n'

    assert parse_exposition(text).samples == (Sample("up", {"a": "b", "c": "d e"}, 1.5),)


def test_help_and_type_are_not_needed_and_comments_are_skipped() -> None:
    assert parse_exposition("# note\n\nup 1").samples == (Sample("up", {}, 1.0),)


def test_names_may_have_colons_and_values_escapes() -> None:
    (sample,) = parse_exposition('vllm:running{m="a\\"b\\\\c\\nd"} 3').samples

    assert sample == Sample("vllm:running", {"m": 'a"b\\c\nd'}, 3.0)


@pytest.mark.parametrize(
    ("text", "value"), [("+Inf", math.inf), ("-Inf", -math.inf), ("9223372036854775794", 2.0**63)]
)
def test_values_stay_what_they_are(text: str, value: float) -> None:
    assert parse_exposition(f"x {text}").samples[0].value == value


def test_not_a_number_is_a_value() -> None:
    assert math.isnan(parse_exposition("x NaN").samples[0].value)


def test_a_counter_keeps_the_name_it_is_queried_by() -> None:
    assert parse_exposition("# TYPE tgi_request_count counter\ntgi_request_count 7\n").names == (
        "tgi_request_count",
    )


def test_an_open_metrics_text_ends_with_its_mark_and_may_have_exemplars_and_times() -> None:
    text = '# TYPE a counter\n# UNIT a seconds\na_total{x="y"} 3 1767225600.5 # {trace="t"} 0.5\n# EOF\n'

    assert parse_exposition(text).samples == (Sample("a_total", {"x": "y"}, 3.0),)


def test_a_time_beside_the_value_is_not_kept() -> None:
    assert parse_exposition("x 1 1395066363000").samples == (Sample("x", {}, 1.0),)


def test_an_empty_label_is_none() -> None:
    exposition = parse_exposition('x{pod="",uuid="a"} 1')

    assert exposition.samples == (Sample("x", {"uuid": "a"}, 1.0),)
    assert not exposition.has_label("pod")
    assert exposition.has_label("pod", "uuid")


def test_a_bad_line_is_named_by_number_and_the_rest_is_read() -> None:
    exposition = parse_exposition('x 1\nx{pod="a} 2\n\ny 3\nz abc\n')

    assert exposition.names == ("x", "y")
    assert [line.number for line in exposition.bad] == [2, 5]
    assert exposition.bad[1] == BadLine(5, "could not convert string to float: 'abc': z abc")


def test_windows_line_ends_are_no_part_of_a_value() -> None:
    assert parse_exposition('x{a="b"} 1\r\n').samples == (Sample("x", {"a": "b"}, 1.0),)


def test_of_a_repeated_series_the_last_value_counts() -> None:
    exposition = parse_exposition('x{a="1",b="2"} 1\nx{b="2",a="1"} 2\n')

    assert exposition.samples == (Sample("x", {"b": "2", "a": "1"}, 2.0),)
    assert exposition.repeated == 1


@pytest.mark.parametrize("name", sorted(path.stem for path in EXPORTERS.glob("*.prom")))
def test_every_exporters_text_is_read_whole(name: str) -> None:
    text = exporter_text(name)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]

    exposition = parse_exposition(text)

    assert (len(exposition.samples), exposition.bad, exposition.repeated) == (len(lines), (), 0)


@given(st.text(alphabet=st.sampled_from('abx{}"=,\\\n#+-.0123456789 eINaf\t\r\0é'), max_size=80))
def test_no_text_is_a_fault(text: str) -> None:
    exposition = parse_exposition(text)

    assert exposition.repeated >= 0
    assert all(1 <= line.number <= text.count("\n") + 1 for line in exposition.bad)
