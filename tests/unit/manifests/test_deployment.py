"""What runs is confined, knows only settings that exist, and installs a policy that is valid."""

from typing import Any

import pytest
import yaml

from autoscaler import __version__
from autoscaler.model.policy import Modes
from autoscaler.service.policy_file import parse_policy
from autoscaler.service.policy_variables import policy_variables
from autoscaler.service.settings import IN_CLUSTER_LISTEN, load_settings, setting_variables
from tests.unit.manifests.sources import (
    K8S,
    OVERLAYS,
    deployment,
    folders_of,
    kustomization,
    objects_of,
    policy_of,
    settings_of,
)

FIELDS = {"metadata.name": "gpu-autoscaler-abc", "metadata.namespace": "gpu-autoscaler"}


def pod() -> dict[str, Any]:
    return dict(deployment()["spec"]["template"]["spec"])


def container() -> dict[str, Any]:
    (one,) = pod()["containers"]
    return dict(one)


def environment(overlay: str) -> dict[str, str]:
    """What the process finds in its environment."""
    stated = {
        one["name"]: one["value"] if "value" in one else FIELDS[one["valueFrom"]["fieldRef"]["fieldPath"]]
        for one in container()["env"]
    }
    return {**settings_of(overlay), **stated}


def test_every_file_is_yaml_and_part_of_an_installation() -> None:
    used = {folder / "kustomization.yaml" for name in OVERLAYS for folder in folders_of(OVERLAYS[name])}
    for folder in {path.parent for path in used}:
        found = kustomization(folder)
        used |= {folder / name for name in found.get("resources", []) if (folder / name).is_file()}
        for generator in found.get("configMapGenerator", []):
            used |= {folder / name for name in [*generator.get("files", []), *generator.get("envs", [])]}
    files = {path for path in K8S.rglob("*") if path.is_file()}
    parsed = [list(yaml.safe_load_all(path.read_text())) for path in files if path.suffix == ".yaml"]

    assert files == used
    assert all(documents and all(documents) for documents in parsed)


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_every_variable_is_a_setting_and_every_value_is_accepted(overlay: str) -> None:
    given = environment(overlay)
    settings = load_settings(given)

    assert {*given} <= {*setting_variables(), *policy_variables()}
    assert settings.prometheus_url
    assert (settings.namespace, settings.identity) == ("gpu-autoscaler", "gpu-autoscaler-abc")


@pytest.mark.parametrize(("overlay", "events"), [("recommend", "false"), ("apply", "true")])
def test_events_are_switched_on_together_with_the_right_to_write_them(overlay: str, events: str) -> None:
    roles = {one["metadata"]["name"] for one in objects_of(overlay)}

    assert events == load_settings(environment(overlay)).events
    assert (events == "true") == ("gpu-autoscaler-events" in roles)


@pytest.mark.parametrize(
    ("overlay", "modes"),
    [
        ("recommend", Modes(default="recommend")),
        ("apply", Modes(default="apply")),
        ("apply-right-size-only", Modes(default="recommend", right_size="apply")),
    ],
)
def test_the_policy_is_valid_and_says_the_mode_of_its_rights(overlay: str, modes: Modes) -> None:
    loaded = parse_policy(policy_of(overlay), origin=overlay, overrides={})

    assert modes == loaded.policy.modes


def test_the_mode_is_left_to_the_policy() -> None:
    names = {name for overlay in OVERLAYS for name in environment(overlay)}

    assert [name for name in names if name == "AUTOSCALER_MODE" or "_MODES_" in name] == []


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_the_policy_keeps_its_name_so_that_it_is_reloaded_live(overlay: str) -> None:
    generators = kustomization(OVERLAYS[overlay])["configMapGenerator"]
    kept = [one["name"] for one in generators if one.get("options", {}).get("disableNameSuffixHash")]
    (mount,) = container()["volumeMounts"]
    (volume,) = pod()["volumes"]

    assert kept == ["gpu-autoscaler-policy"]
    assert volume == {"name": mount["name"], "configMap": {"name": "gpu-autoscaler-policy"}}
    assert "subPath" not in mount
    assert environment(overlay)["AUTOSCALER_POLICY_FILE"] == f"{mount['mountPath']}/policy.yaml"


def test_the_namespace_demands_the_strictest_pod_security() -> None:
    (namespace,) = [one for one in objects_of("recommend") if one["kind"] == "Namespace"]
    labels = namespace["metadata"]["labels"]

    for mode in ("enforce", "warn", "audit"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "latest"


def test_the_container_is_confined() -> None:
    assert pod()["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(mount["readOnly"] for mount in container()["volumeMounts"])
    assert (pod()["enableServiceLinks"], pod()["automountServiceAccountToken"]) == (False, True)


def test_memory_is_bounded_and_processor_time_is_not() -> None:
    assert container()["resources"] == {
        "requests": {"cpu": "200m", "memory": "512Mi"},
        "limits": {"memory": "512Mi"},
    }


def test_probes_and_service_use_the_port_that_is_listened_on() -> None:
    (port,) = container()["ports"]
    (service,) = [one for one in objects_of("recommend") if one["kind"] == "Service"]
    probes = {name: container()[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}

    assert port == {"name": "http", "containerPort": int(IN_CLUSTER_LISTEN.rpartition(":")[2])}
    assert probes == {
        "liveness": {"path": "/livez", "port": "http"},
        "readiness": {"path": "/readyz", "port": "http"},
    }
    assert service["spec"]["ports"] == [{"name": "http", "port": 8080, "targetPort": "http"}]
    assert service["spec"]["type"] == "ClusterIP"


def test_a_liveness_failure_takes_longer_than_a_busy_minute() -> None:
    probe = container()["livenessProbe"]

    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


def test_selectors_pick_the_pods_by_labels_that_never_change() -> None:
    spec = deployment()["spec"]
    (service,) = [one for one in objects_of("recommend") if one["kind"] == "Service"]
    selector = spec["selector"]["matchLabels"]
    (spread,) = pod()["topologySpreadConstraints"]

    assert {"app.kubernetes.io/name", "app.kubernetes.io/instance"} == {*selector}
    assert selector.items() <= spec["template"]["metadata"]["labels"].items()
    assert selector == service["spec"]["selector"] == spread["labelSelector"]["matchLabels"]


def test_a_rollout_never_leaves_the_cluster_without_a_service() -> None:
    assert deployment()["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }


def test_the_image_is_of_this_version() -> None:
    (image,) = kustomization(OVERLAYS["recommend"])["images"]

    assert image == {"name": container()["image"], "newTag": __version__}
    assert deployment()["metadata"]["labels"]["app.kubernetes.io/version"] == __version__
