import json
from pathlib import Path

import pytest
import yaml

from autoscaler.model.duration import Duration
from autoscaler.model.policy import Policy
from autoscaler.service.config_root import shipped_config
from autoscaler.service.faults import ConfigError
from autoscaler.service.policy_file import PolicySource, load_policy, parse_policy
from autoscaler.service.policy_variables import policy_overrides
from autoscaler.service.published import published_files

pytestmark = pytest.mark.unit
HEAD = "apiVersion: gpu-autoscaler.io/v1alpha1\nkind: Policy\n"


def read(text: str) -> Policy:
    return parse_policy(text, origin="policy.yaml", overrides={}).policy


def test_a_file_states_only_what_differs() -> None:
    policy = read(f"{HEAD}evidence:\n  window: 10m\n")

    assert policy.evidence.window == 600_000
    assert policy.need == Policy().need


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "expected a mapping with apiVersion"),
        ("", "expected a mapping with apiVersion"),
        ("a: [", "not YAML"),
        ("kind: Policy\n", "apiVersion must be 'gpu-autoscaler.io/v1alpha1', got None"),
        ("apiVersion: gpu-autoscaler.io/v9\nkind: Policy\n", "got 'gpu-autoscaler.io/v9'"),
        ("apiVersion: gpu-autoscaler.io/v1alpha1\nkind: Pod\n", "kind must be 'Policy'"),
        (f"{HEAD}evidense: {{}}\n", "unknown field `evidense` (allowed: resources, evidence"),
        (
            f"{HEAD}evidence:\n  windw: 5m\n",
            "unknown field `windw` - at `$.evidence` (allowed: window, interval",
        ),
        (f"{HEAD}evidence:\n  window: 5\n", "a duration is text such as 30s"),
        (f"{HEAD}evidence:\n  minCoverage: 7\n", "`float` <= 1.0 - at `$.evidence.minCoverage`"),
        (f"{HEAD}evidence:\n", "section evidence is empty"),
        (f"{HEAD}evidence: 5\n", "`object`, got `int` - at `$.evidence`"),
        (f"{HEAD}evidence:\n  window: 5m\n  window: 6m\n", "key 'window' is repeated"),
        (f"{HEAD}modes:\n  default: destroy\n", "Invalid enum value 'destroy'"),
        (f"{HEAD}evidence:\n  window: 8d\n", "need.historyWindow must not be shorter"),
        (f"{HEAD}? [a]\n: 1\n", "is not text"),
        (f"{HEAD}a: {'[' * 3000}\n", "nested too deeply"),
        (f"{HEAD}a: {'[' * 3000}{']' * 3000}\n", "nested too deeply"),
        (f"{HEAD}a: {'{b: ' * 3000}\n", "nested too deeply"),
        (f"{HEAD}a: {'9' * 5000}\n", "not YAML"),
        (f"{HEAD}a: 2020-99-99\n", "not YAML"),
        (f"{HEAD}evidence: !!python/object/apply:os.system [ls]\n", "not YAML"),
    ],
)
def test_a_bad_file_is_refused_naming_the_file_the_field_and_what_is_allowed(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)

    assert str(caught.value).startswith("policy.yaml")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_overrides_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}evidence: {{window: 10m, minCoverage: 0.9}}\n")

    policy = load_policy(path, {"evidence": {"window": Duration(300_000)}, "need": {"margin": 0.5}}).policy

    assert (policy.evidence.window, policy.evidence.min_coverage, policy.need.margin) == (300_000, 0.9, 0.5)
    assert policy.guards == Policy().guards


def test_a_list_of_sections_is_stated_in_the_environment_as_json(tmp_path: Path) -> None:
    variable, opens = "AUTOSCALER_FREEZE_WINDOWS", '[{"schedule": "0 18 * * 5", "duration": "62h"}]'
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}freeze: {{windows: [{{schedule: '0 0 * * *', duration: 1h}}]}}\n")

    (window,) = load_policy(path, policy_overrides({variable: opens})).policy.freeze.windows

    assert (window.schedule, window.duration, window.time_zone) == ("0 18 * * 5", 62 * 3_600_000, "UTC")
    for bad in ('[{"schedule": 1}]', "[{"):
        with pytest.raises(ConfigError, match=variable):
            policy_overrides({variable: bad})


def test_a_conflict_between_file_and_environment_names_both(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)

    with pytest.raises(
        ConfigError, match=r"policy.yaml with the environment's overrides: need.historyWindow"
    ):
        load_policy(path, {"evidence": {"window": Duration(300 * 86_400_000)}})


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_policy(tmp_path / "absent.yaml", {})


def test_an_oversized_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("#" * (1024 * 1024 + 1))

    with pytest.raises(ConfigError, match="over 1048576 bytes"):
        load_policy(path, {})


def test_a_bad_new_file_is_refused_once_and_the_old_policy_stays(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}need: {{margin: 0.2}}\n")
    told: list[tuple[str, str]] = []
    source = PolicySource(path, {})
    source.refresh(lambda *event: told.append(event))
    path.write_text(f"{HEAD}need: {{margin: banana}}\n")

    first = source.refresh(lambda *event: told.append(event))
    second = source.refresh(lambda *event: told.append(event))

    assert first.policy.need.margin == second.policy.need.margin == 0.2
    assert [event for event, _ in told] == ["policy_refused"]
    assert "$.need.margin" in source.fault


def test_a_mounted_config_map_that_is_swapped_comes_into_force(tmp_path: Path) -> None:
    """A kubelet writes a new folder and turns a link to it; the file's own path never changes."""
    for name, margin in (("..old", 0.2), ("..new", 0.3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text(f"{HEAD}need: {{margin: {margin}}}\n")
    (tmp_path / "..data").symlink_to("..old")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    source = PolicySource(tmp_path / "policy.yaml", {})
    before = source.refresh(lambda *_: None).policy.need.margin
    (tmp_path / "..tmp").symlink_to("..new")
    (tmp_path / "..tmp").rename(tmp_path / "..data")

    assert (before, source.refresh(lambda *_: None).policy.need.margin) == (0.2, 0.3)


def test_a_repaired_file_comes_into_force(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)
    told: list[str] = []
    source = PolicySource(path, {})
    path.write_text("nonsense")
    source.refresh(lambda event, _: told.append(event))
    path.write_text(f"{HEAD}need: {{margin: 0.3}}\n")

    loaded = source.refresh(lambda event, _: told.append(event))

    assert (loaded.policy.need.margin, source.fault) == (0.3, "")
    assert told == ["policy_refused", "policy_loaded"]


def test_other_accelerators_need_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)
    source = PolicySource(path, {})
    path.write_text(f"{HEAD}resources: {{boards: [a.com/gpu]}}\n")

    loaded = source.refresh(lambda *_: None)

    assert loaded.policy == Policy()
    assert "need a restart" in source.fault


def test_a_file_that_vanishes_keeps_the_policy_in_force(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}need: {{margin: 0.2}}\n")
    source = PolicySource(path, {})
    path.unlink()

    assert source.refresh(lambda *_: None).policy.need.margin == 0.2
    assert "No such file" in source.fault


@pytest.mark.parametrize("name", sorted(published_files()))
def test_the_published_files_are_current(name: str) -> None:
    text = (shipped_config() / name).read_text()

    assert text == published_files()[name], "run: python -m autoscaler.service.published"


def test_the_default_file_equals_the_defaults() -> None:
    assert load_policy(shipped_config() / "policy" / "default.yaml", {}).policy == Policy()


def test_the_demo_policy_is_valid_and_short() -> None:
    policy = load_policy(shipped_config() / "policy" / "demo.yaml", {}).policy

    assert policy.evidence.window == policy.methods.idle_floor == 20_000
    assert policy.need.history_window >= policy.evidence.window
    assert policy.modes.default == "recommend"


def test_the_schema_lists_every_section_and_forbids_others() -> None:
    schema = json.loads((shipped_config() / "policy" / "schema.json").read_text())
    sections = set(yaml.safe_load((shipped_config() / "policy" / "default.yaml").read_text()))

    assert set(schema["properties"]) == sections
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["apiVersion", "kind"]


def test_a_file_that_became_too_deep_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"{HEAD}evidence: {{window: 10m}}\n")
    source = PolicySource(path, {})
    path.write_text(f"{HEAD}a: {'[' * 3000}\n")
    told: list[str] = []

    in_force = source.refresh(lambda event, _: told.append(event))

    assert (in_force.policy.evidence.window, told) == (600_000, ["policy_refused"])
    assert "nested too deeply" in source.fault
