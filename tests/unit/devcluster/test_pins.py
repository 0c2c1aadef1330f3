import dataclasses
import re
from pathlib import Path

import pytest

from devcluster.go_toolchain import parse_go_version
from devcluster.pinsets import (
    ALL_PIN_SETS,
    KUBERNETES_VERSION,
    KUEUE_VERSION,
    ON_DEMAND_PIN_SETS,
    PINS_DIR,
    PROMETHEUS_VERSION,
    PinSet,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("pin_set", [*ALL_PIN_SETS, *ON_DEMAND_PIN_SETS], ids=lambda one: one.name)
def test_the_key_changes_with_the_flags_and_with_nothing_else(pin_set: PinSet) -> None:
    assert pin_set.key() == pin_set.key()
    assert dataclasses.replace(pin_set, ldflags="-s").key() != pin_set.key()
    assert dataclasses.replace(pin_set, expected_minutes=1).key() == pin_set.key()


def test_the_versions_stamped_into_the_binaries_are_the_pinned_ones() -> None:
    control_plane = (PINS_DIR / "controlplane" / "go.mod").read_text()
    prometheus = (PINS_DIR / "prometheus" / "go.mod").read_text()

    kueue = (PINS_DIR / "kueue" / "go.mod").read_text()

    assert f"sigs.k8s.io/kueue {KUEUE_VERSION}" in kueue
    assert f"k8s.io/kubernetes {KUBERNETES_VERSION}\n" in control_plane.replace(" // indirect", "")
    assert f"github.com/prometheus/prometheus v{PROMETHEUS_VERSION}" in prometheus


@pytest.mark.parametrize("path", sorted(PINS_DIR.rglob("*.*")), ids=lambda path: path.name)
def test_no_pin_names_a_registry_or_a_path_of_a_machine(path: Path) -> None:
    assert not re.search(r"https?://|file://|--index-url|=> ?[./]", path.read_text())


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8", (1, 26, 8)),
        ("go version go1.27 linux/amd64", (1, 27, 0)),
        ("devel +abc", (0, 0, 0)),
        ("", (0, 0, 0)),
    ],
)
def test_go_versions_are_read_and_no_version_is_too_old(text: str, version: tuple[int, int, int]) -> None:
    assert parse_go_version(text) == version
