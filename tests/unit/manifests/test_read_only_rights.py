"""The shipped read-only rights are exactly what the service reads, and nothing that changes anything."""

from pathlib import Path
from typing import Any

import yaml

from autoscaler.kube import KINDS

MANIFEST = Path(__file__).parents[3] / "k8s/base/read-only.yaml"


def rules() -> list[dict[str, Any]]:
    (role,) = [d for d in yaml.safe_load_all(MANIFEST.read_text()) if d["kind"] == "ClusterRole"]
    return list(role["rules"])


def test_every_kind_that_is_read_may_be_read_and_no_other() -> None:
    granted = {(group, name) for rule in rules() for group in rule["apiGroups"] for name in rule["resources"]}

    assert {(kind.group, kind.plural) for kind in KINDS.values()} == granted


def test_no_right_changes_anything() -> None:
    assert {"get", "list", "watch"} == {verb for rule in rules() for verb in rule["verbs"]}
