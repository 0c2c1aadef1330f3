import sys
from pathlib import Path

import pytest
from build import NOW_MS, Spec, boards, cluster

from autoscaler.cli.plan_file import read_plan_file, refuse_stale
from autoscaler.decide import plan as decide_plan
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.service.faults import ConfigError, ServiceError
from autoscaler.ui.views import plan_view

MINUTE_MS = 60_000
TAG = "\U000e0041"


def made() -> Plan:
    """A plan with an action, refusals, rows, and a name that JSON writes as a pair of surrogates."""
    consent = {"gpu-autoscaler.io/allowed-gpus": "1,2"}
    return decide_plan(
        cluster(
            Spec(name="web", gpus=2, seen=(boards(0.1, 0.0),), annotations=consent),
            Spec(name=f"odd-{TAG}-on-123", seen=(None,)),
            *(Spec(name=f"busy-{index}", seen=(boards(0.9),)) for index in range(3)),
        ),
        Policy(),
        NOW_MS,
    )


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_plan_prints_is_read_back_as_the_same_plan(form: str, tmp_path: Path) -> None:
    plan, path = made(), tmp_path / "plan"
    path.write_text(plan_view(plan, form="json" if form == "json" else "yaml"))

    assert plan.actions
    assert read_plan_file(path) == plan


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Expected `object`, got `null`"),
        ("[1, 2]", "Expected `object`, got `array`"),
        ("{", "not a plan"),
        ("taken_ms: 1", "missing required field `mode`"),
        ('{"taken_ms": 1, "taken_ms": 2}', "a key is repeated"),
        ("taken_ms: 1\ntaken_ms: 2\n", "'taken_ms' is repeated"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("taken_ms: soon\nmode: apply\nfleet: {}\n", "Expected `int`"),
    ],
    ids=["empty", "a list", "cut", "no plan", "json twice", "yaml twice", "code", "deep yaml", "deep json", "a word"],
)  # fmt: skip
def test_anything_else_is_one_sentence(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError) as refused:
        read_plan_file(path)

    assert str(refused.value).startswith(f"{path}: not a plan: ")
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="not UTF-8"):
        read_plan_file(path)


def test_a_file_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="/nowhere: cannot be read: No such file"):
        read_plan_file(Path("/nowhere"))


def test_a_file_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["autoscaler.cli.plan_file"], "MAX_BYTES", 1000)

    with pytest.raises(ConfigError, match="of over 1000 bytes is not read"):
        read_plan_file(Path("/dev/zero"))


@pytest.mark.parametrize("age_ms", [0, 60 * MINUTE_MS, -MINUTE_MS])
def test_a_plan_is_fresh_for_an_hour(age_ms: int) -> None:
    refuse_stale(made(), NOW_MS + age_ms)


@pytest.mark.parametrize(
    ("age_ms", "told"),
    [
        (60 * MINUTE_MS + 1, "made 1h ago, over 1h"),
        (25 * 60 * MINUTE_MS, "made 1d1h ago"),
        (-2 * MINUTE_MS, "made 2m in the future"),
    ],
)
def test_an_older_or_a_future_plan_is_not(age_ms: int, told: str) -> None:
    with pytest.raises(ServiceError, match=told) as refused:
        refuse_stale(made(), NOW_MS + age_ms)

    assert "--stale-ok" in str(refused.value)
