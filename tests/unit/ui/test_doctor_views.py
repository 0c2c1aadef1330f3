import json

import yaml

from autoscaler.model.findings import Examination, Finding
from autoscaler.ui.doctor_views import doctor_view
from autoscaler.ui.views import Screen

HOSTILE = "evil\x1b[2J\u202e"
SHEET = Examination(
    findings=(
        Finding("D1", "metrics store", "ok", "answers"),
        Finding(
            "D3", "pods have series", "failed", f"0 of 2 ({HOSTILE})", "owners:\n  - {pod: exported_pod}"
        ),
        Finding("D8", "monitors selected", "skipped", "no operator"),
    ),
    server="https://10.0.0.1",
    user="me",
)


def test_every_check_and_every_mend_is_shown() -> None:
    lines = doctor_view(SHEET, screen=Screen(columns=100)).splitlines()

    assert lines[0] == "server https://10.0.0.1  as me  store -"
    assert lines[1] == "ok 1  warning 0  failed 1  skipped 1"
    assert [line.split()[0] for line in lines if line.startswith("D")] == ["D1", "D3", "D8", "D3"]
    assert lines[-2:] == ["D3   owners:", "       - {pod: exported_pod}"]


def test_foreign_text_is_spelled_out() -> None:
    for form in ("table", "wide", "json", "yaml"):
        text = doctor_view(SHEET, form=form)

        assert "\x1b" not in text
        assert "\u202e" not in text


def test_scripts_get_the_same_from_both_forms() -> None:
    document = json.loads(doctor_view(SHEET, form="json"))

    assert document == yaml.safe_load(doctor_view(SHEET, form="yaml"))
    assert document["failed"] == ["D3"]
    assert document["checks"][0] == {
        "id": "D1",
        "name": "metrics store",
        "state": "ok",
        "found": "answers",
        "fix": "",
    }


def test_without_anything_to_mend_no_heading_is_left_alone() -> None:
    well = Examination(findings=SHEET.findings[:1])

    assert "TO MEND" not in doctor_view(well)
