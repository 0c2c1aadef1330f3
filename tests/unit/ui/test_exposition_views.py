import json

import pytest

from autoscaler.model.exposition import (
    DeviceUnowned,
    ExpositionReport,
    Ghost,
    MetricRead,
    PodJudged,
    ProfileRead,
    SignalRead,
)
from autoscaler.ui.exposition_views import exposition_view

pytestmark = pytest.mark.unit

SIGNALS = tuple(SignalRead(f"s{i}", "gpu-a", float(i), "W") for i in range(5))
REPORT = ExpositionReport(
    profiles=(
        ProfileRead(
            profile="dcgm",
            metrics=(MetricRead("USE", "0-100", "%"), MetricRead("FB", "amount", "MiB")),
            series=7,
            owner_labels=("pod", "namespace"),
            device_label="UUID",
        ),
        ProfileRead(profile="mute", metrics=(MetricRead("M", "amount", "MiB"),), series=1, live=False),
    ),
    pods=(
        PodJudged("dev", "a-0", "busy", "Measured", "90% of 1 board", {"nvidia.com/gpu": 1}, SIGNALS),
        PodJudged("dev", "b-0", "unknown", "EvidencePartial", "no number", {"nvidia.com/gpu": 2}),
    ),
    dropped={"not-a-number": 3},
    unowned=(DeviceUnowned("gpu-z", "", 0.5),),
    ghosts=(Ghost("dev", "gone-0", "dcgm", ("gpu-y",)), Ghost("", "bare-0", "seed")),
    notes=("one scrape shows nothing that moves",),
)


def lines_with(text: str, word: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if word in line]


def test_the_table_has_every_part() -> None:
    text = exposition_view(REPORT)

    assert lines_with(text, "USE") == ["dcgm USE 0-100 % pod, namespace UUID 7"]
    assert lines_with(text, "FB") == ["FB amount MiB"]
    assert lines_with(text, "none of its signals")
    assert lines_with(text, "dev/b-0") == ["dev/b-0 2 nvidia.com/gpu unknown EvidencePartial no number -"]
    assert lines_with(text, "gpu-z") == ["gpu-z - 50 %"]
    assert lines_with(text, "dev/gone-0") == ["dev/gone-0 dcgm gpu-y"]
    assert lines_with(text, "bare-0") == ["-/bare-0 seed -"]
    assert lines_with(text, "dropped") == ["dropped: 3 not-a-number"]
    assert lines_with(text, "note:") == ["note: one scrape shows nothing that moves"]


def test_the_table_shows_a_few_signals_and_the_wide_one_all_with_their_devices() -> None:
    assert "2 more" in " ".join(exposition_view(REPORT).split())
    assert "s4 4 W (gpu-a)" in exposition_view(REPORT, form="wide")


def test_the_json_has_every_key() -> None:
    document = json.loads(exposition_view(REPORT, form="json"))

    assert set(document) == {"profiles", "pods", "dropped", "unowned", "ghosts", "notes"}
    assert {"namespace", "pod", "verdict", "reason", "signals"} <= set(document["pods"][1])
    assert document["pods"][0]["signals"][0] == {"signal": "s0", "device": "gpu-a", "value": 0.0, "unit": "W"}


def test_an_empty_report_says_so() -> None:
    text = exposition_view(ExpositionReport())

    assert "no metric of any profile" in text
    assert "no pod holds accelerators" in text


def test_foreign_text_cannot_draw() -> None:
    hostile = PodJudged("dev", "a\x1b[31m", "busy", "Measured", "[bold]x[/bold]")

    assert "\x1b" not in exposition_view(ExpositionReport(pods=(hostile,)))
