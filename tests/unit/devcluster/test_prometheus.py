import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.prometheus import AUTOSCALER_JOB, EXPORTER_JOB, OTHER_JOB, write_configuration, write_target


def jobs(tmp_path: Path) -> dict[str, dict[str, Any]]:
    write_configuration(tmp_path / "prometheus.yaml", exporter_port=9, targets_dir=tmp_path)
    content = yaml.safe_load((tmp_path / "prometheus.yaml").read_text())
    return {job["job_name"]: job for job in content["scrape_configs"]}


def test_only_the_scenarios_exporter_keeps_labels_that_a_target_has_too(tmp_path: Path) -> None:
    assert [name for name, job in jobs(tmp_path).items() if job.get("honor_labels")] == [EXPORTER_JOB]


@pytest.mark.parametrize("job", [AUTOSCALER_JOB, OTHER_JOB])
def test_a_target_that_comes_later_belongs_to_its_job_alone(tmp_path: Path, job: str) -> None:
    write_target(tmp_path, job, 80, name="one", labels={"pod": "exporter"})
    write_target(tmp_path, job, 81, name="two")
    patterns = {
        name: one["file_sd_configs"][0]["files"]
        for name, one in jobs(tmp_path).items()
        if "file_sd_configs" in one
    }
    files = sorted(path for path in tmp_path.iterdir() if path.suffix == ".json")
    owners = {name for path in files for name, (glob,) in patterns.items() if fnmatch(str(path), glob)}

    assert owners == {job}
    assert [json.loads(path.read_text())[0] for path in files] == [
        {"targets": ["127.0.0.1:80"], "labels": {"pod": "exporter"}},
        {"targets": ["127.0.0.1:81"], "labels": {}},
    ]
