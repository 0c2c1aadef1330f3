from pathlib import Path

import yaml

from devcluster.binaries import Binaries
from devcluster.control_plane import CommandLines, Layout
from devcluster.ports import Ports


def stage_files(tmp_path: Path) -> list[Path]:
    data = tmp_path / "built/data/pod"
    data.mkdir(parents=True)
    for name in ("pod-complete.yaml", "pod-ready.yaml"):
        (data / name).write_text("{}")
    binaries = Binaries(control_plane_dir=tmp_path / "built", prometheus_dir=tmp_path)
    commands = CommandLines(binaries, Layout(tmp_path / "run"), Ports(1, 2, 3, 4, 5, 6))
    flags = [str(argument) for argument in commands.kwok().arguments]
    return [Path(flag.removeprefix("--config=")) for flag in flags if flag.startswith("--config=")]


def test_our_own_stage_stands_in_for_kwoks_of_the_same_name(tmp_path: Path) -> None:
    files = stage_files(tmp_path)

    assert sorted(path.name for path in files) == ["pod-complete.yaml", "pod-ready.yaml"]
    assert [path.name for path in files if tmp_path in path.parents] == ["pod-ready.yaml"]


def test_the_pods_of_a_job_may_keep_running(tmp_path: Path) -> None:
    (own,) = (path for path in stage_files(tmp_path) if path.name == "pod-complete.yaml")
    stage = yaml.safe_load(own.read_text())
    rules = {rule["key"]: rule["operator"] for rule in stage["spec"]["selector"]["matchExpressions"]}

    assert rules['.metadata.annotations["devcluster.gpu-autoscaler.io/keeps-running"]'] == "DoesNotExist"
