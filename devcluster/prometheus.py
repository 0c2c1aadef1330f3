"""Prometheus' configuration: the GPU exporter every second, and targets that come later by file."""

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from devcluster.ports import LOOPBACK

EXPORTER_JOB = "gpu-exporter"
AUTOSCALER_JOB = "gpu-autoscaler"
OTHER_JOB = "other-exporters"


def write_configuration(
    path: Path, *, exporter_port: int | None, targets_dir: Path, interval_s: int = 1
) -> None:
    """The configuration file.

    The exporter's own `pod` and `namespace` labels are kept.  The jobs of the autoscaler and of other exporters have
    no target until `write_target` names one; there, as by default, labels of the target win over those of a series.
    """
    jobs: list[dict[str, object]] = [
        {
            "job_name": job,
            "file_sd_configs": [{"files": [str(targets_dir / f"{job}*.json")], "refresh_interval": "1s"}],
        }
        for job in (AUTOSCALER_JOB, OTHER_JOB)
    ]
    if exporter_port is not None:
        jobs.append(
            {
                "job_name": EXPORTER_JOB,
                "honor_labels": True,
                "static_configs": [{"targets": [f"{LOOPBACK}:{exporter_port}"]}],
            }
        )
    interval = f"{interval_s}s"
    content = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "scrape_configs": jobs,
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def write_target(
    targets_dir: Path, job: str, port: int, *, name: str = "", labels: Mapping[str, str] | None = None
) -> None:
    """Let Prometheus scrape a loopback port under a job that takes its targets from files.

    A job has one target of each `name`; `labels` are the target's, `__metrics_path__` among them.
    """
    file_name = f"{job}-{name}.json" if name else f"{job}.json"
    pending = targets_dir / f".{file_name}"
    pending.write_text(json.dumps([{"targets": [f"{LOOPBACK}:{port}"], "labels": dict(labels or {})}]))
    pending.rename(targets_dir / file_name)
