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


def test_the_shipped_profiles_are_dcgm_and_seed() -> None:
    dcgm, seed = PROFILES["dcgm"], PROFILES["seed"]

    assert sorted(PROFILES) == ["dcgm", "seed"]
    assert [(s.metric, s.kind, s.full) for s in dcgm.signals] == [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "engine", 1),
        ("DCGM_FI_DEV_GPU_UTIL", "util", 100),
    ]
    assert (dcgm.owners[0].pod, dcgm.owners[1].pod) == ("exported_pod", "pod")
    assert dcgm.power is not None
    assert dcgm.power.idle_max_watts == 150
    assert (seed.scope, seed.signals[0].metric, seed.signals[0].full) == ("pod", "gpu_gpu_utilization", 100)


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
