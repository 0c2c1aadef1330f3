"""Profiles are data that is understood completely or refused."""

from pathlib import Path

import pytest
from unit.observe.observed import PROFILES

from autoscaler.observe.profiles import ProfileError, load_profiles, parse_profile

pytestmark = pytest.mark.unit

GOOD = """
name: mine
scope: device
signals: [{metric: busy, kind: sm, full: 1}]
owners: [{pod: pod, namespace: namespace}]
device: uuid
"""


def test_the_shipped_profiles_read_these_signals_at_these_scales() -> None:
    assert {name: [(s.metric, s.kind, s.full) for s in p.signals] for name, p in PROFILES.items()} == {
        "amd": [("gpu_gfx_activity", "engine", 100)],
        "amd-prefixed": [("amd_gpu_gfx_activity", "engine", 100)],
        "amd-upper": [("GPU_GFX_ACTIVITY", "engine", 100)],
        "ascend": [("container_npu_utilization", "util", 100), ("npu_chip_info_utilization", "util", 100)],
        "dcgm": [
            ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "engine", 1),
            ("DCGM_FI_PROF_SM_ACTIVE", "sm", 1),
            ("DCGM_FI_DEV_GPU_UTIL", "util", 100),
        ],
        "dcgm-1x": [("dcgm_fi_prof_gr_engine_active", "engine", 1), ("dcgm_fi_dev_gpu_util", "util", 100)],
        "gaudi": [("habanalabs_utilization", "util", 100)],
        "generic": [("accelerator_utilization_ratio", "engine", 1)],
        "gke-system": [("kubernetes_io:container_accelerator_duty_cycle", "util", 100)],
        "hami": [("hami_container_device_utilization_ratio", "util", 100)],
        "hami-legacy": [("Device_utilization_desc_of_container", "util", 100)],
        "nvidia-gpu-exporter": [("nvidia_smi_utilization_gpu_ratio", "util", 1)],
        "nvidia-gpu-exporter-mig": [
            ("nvidia_smi_mig_graphics_activity_ratio", "engine", 1),
            ("nvidia_smi_mig_sm_activity_ratio", "sm", 1),
        ],
        "seed": [("gpu_gpu_utilization", "util", 100)],
        "xpu": [("xpum_engine_ratio", "engine", 1), ("xpum_engine_group_ratio", "engine", 1)],
    }


def test_no_two_shipped_profiles_read_the_same_metric() -> None:
    metrics = [metric for profile in PROFILES.values() for metric in profile.metrics]

    assert len(metrics) == len(set(metrics))


def test_an_own_profile_replaces_the_shipped_one_of_its_name_and_stands_beside_the_others(
    tmp_path: Path,
) -> None:
    shipped = Path(__file__).parents[3] / "config" / "profiles"
    (tmp_path / "seed.yaml").write_text(GOOD.replace("name: mine", "name: seed"), encoding="utf-8")
    found = {profile.name: profile for profile in load_profiles(shipped, tmp_path)}

    assert set(found) == set(PROFILES)
    assert found["seed"].signals[0].metric == "busy"


def test_every_label_that_is_read_is_grouped_by_once() -> None:
    assert parse_profile(GOOD + "nodes: [hostname, pod]\n", where="x").labels == (
        "hostname",
        "namespace",
        "pod",
        "uuid",
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("colour: red", "unknown field `colour`"),
        ("scope: cluster", "key 'scope' is repeated"),
        ("memory: {used: a, unit: MB, free: b}", "$.memory.unit"),
        ("memory: {used: a, unit: MiB}", "exactly one of free and total"),
        ("power: {metric: w, idle_max_watts: 0}", "$.power.idle_max_watts"),
        ("match: {'a b': x}", "match"),
        ("slices: ['x{y}']", "$.slices"),
        ("nodes: [1]", "$.nodes"),
        ("memory: {used: a, unit: MiB, total: b, reserved: c}", "reserved only beside free"),
        ("variants: [{name: x, label: y, value: '('}]", "variant x"),
        ("energy: 'a{}'", "$.energy"),
        ("traffic: [{metric: a, quiet_max: -1}]", "$.traffic[0].quiet_max"),
    ],
)
def test_a_profile_that_is_not_understood_is_refused_by_name(change: str, told: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(GOOD + change, where="mine.yaml")

    assert str(caught.value).startswith("mine.yaml: ")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("full: 1", "full: 10", "$.signals[0].full"),
        ("kind: sm", "kind: vibes", "$.signals[0].kind"),
        ("metric: busy", "metric: 'busy{x=\"1\"}'", "$.signals[0].metric"),
        ("device: uuid", "", "scope device needs a device label"),
        ("device: uuid", "device: [uuid, 'a+']", "$.device"),
        (
            (
                "scope: device\nsignals: [{metric: busy, kind: sm, full: 1}]\n"
                "owners: [{pod: pod, namespace: namespace}]\ndevice: uuid"
            ),
            "scope: pod\nsignals: [{metric: busy, kind: sm, full: 1}]",
            "scope pod needs owners",
        ),
        ("signals: [{metric: busy, kind: sm, full: 1}]", "signals: []", "$.signals"),
        ("name: mine", "name: [", "mine.yaml"),
        ("name: mine", "name: " + "[" * 3000, "nested too deeply"),
    ],
)
def test_a_wrong_value_is_refused_by_name(old: str, new: str, told: str) -> None:
    with pytest.raises(ProfileError, match=r"mine\.yaml") as caught:
        parse_profile(GOOD.replace(old, new), where="mine.yaml")

    assert told in str(caught.value)


def test_a_folder_without_profiles_or_with_a_repeated_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no profile"):
        load_profiles(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(GOOD, encoding="utf-8")

    with pytest.raises(ProfileError, match="another file has a profile named mine"):
        load_profiles(tmp_path)
