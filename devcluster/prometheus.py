"""Prometheus' configuration: the GPU exporter every second, and targets that come later by file."""

import json
from pathlib import Path

import yaml

from devcluster.ports import LOOPBACK

EXPORTER_JOB = "gpu-exporter"
AUTOSCALER_JOB = "gpu-autoscaler"


def write_configuration(
    path: Path, *, exporter_port: int | None, targets_dir: Path, interval_s: int = 1
) -> None:
    """The configuration file.

    The exporter's own `pod` and `namespace` labels are kept.  The autoscaler's job has no target until
    `write_target` names one.
    """
    jobs: list[dict[str, object]] = [
        {
            "job_name": AUTOSCALER_JOB,
            "file_sd_configs": [
                {"files": [str(targets_dir / f"{AUTOSCALER_JOB}.json")], "refresh_interval": "1s"}
            ],
        }
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


def write_target(targets_dir: Path, job: str, port: int) -> None:
    """Let Prometheus scrape a loopback port under a job that takes its targets from files."""
    pending = targets_dir / f".{job}.json"
    pending.write_text(json.dumps([{"targets": [f"{LOOPBACK}:{port}"]}]))
    pending.rename(targets_dir / f"{job}.json")
