"""The manifests as they are written: what a kustomization brings together, without building it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from autoscaler.observe.strict_yaml import load_yaml

ROOT = Path(__file__).parents[3]
K8S = ROOT / "k8s"
OVERLAYS = {
    "recommend": K8S / "base",
    "apply": K8S / "overlays/apply",
    "apply-right-size-only": K8S / "overlays/apply-right-size-only",
}
"""What an operator applies, by the mode that it is for."""


def kustomization(folder: Path) -> dict[str, Any]:
    """A folder's kustomization."""
    return dict(load_yaml((folder / "kustomization.yaml").read_text()))


def folders_of(folder: Path) -> Iterator[Path]:
    """The folder and every base and component that it includes, what is included first."""
    found = kustomization(folder)
    for name in [*found.get("resources", []), *found.get("components", [])]:
        if (folder / name).is_dir():
            yield from folders_of((folder / name).resolve())
    yield folder


def objects_of(overlay: str) -> list[dict[str, Any]]:
    """Every object in the files of an overlay."""
    return [
        item
        for folder in folders_of(OVERLAYS[overlay])
        for name in kustomization(folder).get("resources", [])
        if (folder / name).is_file()
        for item in yaml.safe_load_all((folder / name).read_text())
    ]


def settings_of(overlay: str) -> dict[str, str]:
    """What the generated ConfigMap of settings holds."""
    found: dict[str, str] = {}
    for folder in folders_of(OVERLAYS[overlay]):
        for generator in kustomization(folder).get("configMapGenerator", []):
            if generator["name"] == "gpu-autoscaler-settings":
                lines = [*generator.get("literals", [])]
                for name in generator.get("envs", []):
                    lines += (folder / name).read_text().splitlines()
                found |= dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return found


def policy_of(overlay: str) -> str:
    """The text of the policy that an overlay installs."""
    (generator,) = [
        one
        for one in kustomization(OVERLAYS[overlay])["configMapGenerator"]
        if one["name"] == "gpu-autoscaler-policy"
    ]
    (name,) = generator["files"]
    return (OVERLAYS[overlay] / name).read_text()


def deployment() -> dict[str, Any]:
    """The one Deployment."""
    (found,) = [item for item in objects_of("recommend") if item["kind"] == "Deployment"]
    return found


def pod_user() -> tuple[int, int]:
    """The numbers of the user and the group that the Deployment runs as."""
    context = deployment()["spec"]["template"]["spec"]["securityContext"]
    return context["runAsUser"], context["runAsGroup"]


def container_arguments() -> list[str]:
    """What the Deployment hands to the image's entry point."""
    (container,) = deployment()["spec"]["template"]["spec"]["containers"]
    return list(container["args"])
