import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devcluster import binaries
from devcluster.errors import BuildError
from devcluster.pinsets import ALL_PIN_SETS, KUEUE, KUEUE_CRDS

pytestmark = pytest.mark.unit

FAKE_GO = """#!/bin/sh
if [ "$1" = list ]; then echo "{module}"; exit 0; fi
if [ "$1" = mod ]; then exit 0; fi
echo "$PWD" >> "{calls}"
sleep 0.2
if [ -n "{fails}" ]; then echo "no such package"; exit 1; fi
for name in server kube-apiserver kube-controller-manager kube-scheduler kubectl kwok prometheus promtool kueue; do
  touch "$GOBIN/$name"
done
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    use_fake_go(tmp_path, monkeypatch, fails="")
    stage = tmp_path / "module" / "kustomize" / "stage" / "pod" / "fast"
    stage.mkdir(parents=True)
    for name in ("pod-ready.yaml", "kustomization.yaml"):
        (stage / name).write_text("kind: Stage")
    crds = tmp_path / "module" / "config/components/crd/bases"
    crds.mkdir(parents=True)
    (crds / "workloads.yaml").write_text("kind: CustomResourceDefinition")
    return tmp_path / "calls"


def use_fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fails: str) -> None:
    go = tmp_path / "go"
    go.write_text(FAKE_GO.format(module=tmp_path / "module", calls=tmp_path / "calls", fails=fails))
    go.chmod(go.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(binaries, "go_command", lambda _: go)


def test_a_set_of_pins_is_built_once_whoever_asks_at_the_same_time(calls: Path) -> None:
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: binaries.ensure_binaries(), range(4)))

    assert len(set(found)) == 1
    assert len(calls.read_text().splitlines()) == len(ALL_PIN_SETS)


def test_every_binary_is_found_under_the_name_we_use(calls: Path) -> None:
    built = binaries.ensure_binaries()

    assert all(built.path(name).exists() for pin_set in ALL_PIN_SETS for name in pin_set.binaries)
    assert [path.name for path in built.kwok_stages()] == ["pod-ready.yaml"]
    assert calls.exists()


def test_what_only_some_tests_need_is_built_when_they_ask_for_it(calls: Path) -> None:
    binaries.ensure_binaries()
    for_everyone = [path.name for path in binaries.cache_root().iterdir()]
    before = calls.read_text()
    crds = binaries.ensure_on_demand(KUEUE_CRDS)
    copied = calls.read_text()
    kueue = binaries.ensure_on_demand(KUEUE)

    assert not [name for name in for_everyone if name.startswith("kueue")]
    assert [path.name for path in (crds / "data/config/components/crd/bases").iterdir()] == ["workloads.yaml"]
    assert copied == before, "the kinds alone need no build"
    assert (kueue / "bin/kueue").exists()
    assert calls.read_text().splitlines()[-1].endswith("pins/kueue")
    assert binaries.ensure_on_demand(KUEUE) == kueue


def test_a_failed_build_says_why_and_leaves_nothing_that_looks_finished(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake_go(tmp_path, monkeypatch, fails="yes")

    with pytest.raises(BuildError, match="no such package"):
        binaries.ensure_binaries()

    assert calls.exists()
    assert [path.name for path in binaries.cache_root().iterdir()] == ["controlplane.lock"]
