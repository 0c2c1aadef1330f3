"""The doctor on a real control plane and a real Prometheus: each fault is found, named, and its mend mends it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from devcluster import Cluster
from devcluster.prometheus import OTHER_JOB
from devcluster.rooms import Room
from tests.cluster.live_service import ACCOUNT, QUICK_POLICY, rights_without
from tests.cluster.page_exporter import board_lines, page_exporter
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, play
from tests.cluster.test_commands_acting import Person

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]


@dataclass(frozen=True)
class Doctor:
    """The command, under an account of the room's own, looking at the room alone."""

    cluster: Cluster
    room: Room
    environment: Mapping[str, str]

    async def asks(self, **environment: str) -> dict[str, dict[str, Any]]:
        """What it found, by check."""
        ended = await Person(self.room, {**self.environment, **environment}).types("doctor", "-o", "json")
        document = json.loads(ended.out)
        assert ended.code == (1 if document["failed"] else 0), ended.err
        return {check["id"]: check for check in document["checks"]}

    async def asks_until(self, number: str, state: str, **environment: str) -> dict[str, dict[str, Any]]:
        """The same once a check has a state."""
        return await eventually(
            lambda: self.asks(**environment),
            lambda found: found[number]["state"] == state,
            what=f"{number} {state}",
        )


@pytest_asyncio.fixture
async def doctor(cluster: Cluster, room: Room) -> AsyncIterator[Doctor]:
    """A doctor with the shipped rights to read; they go with the room."""
    await room.add_nodes()
    await cluster.apply(rights_without(room))
    kubeconfig = await cluster.service_account_kubeconfig(room.namespace, ACCOUNT)
    environment = {
        **QUICK_POLICY,
        "AUTOSCALER_KUBECONFIG": str(kubeconfig),
        "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
        "AUTOSCALER_NAMESPACES": room.namespace,
        "AUTOSCALER_LEADER_ELECTION": "false",
    }
    yield Doctor(cluster, room, environment)
    own = f"{ACCOUNT}-{room.namespace}"
    await cluster.kubectl("delete", "--ignore-not-found", f"clusterrole/{own}", f"clusterrolebinding/{own}")


async def test_a_healthy_room_is_told_with_its_numbers_and_nothing_is_written(
    cluster: Cluster, doctor: Doctor
) -> None:
    room = doctor.room
    await play(room, room.deployment("app", boards=2), load=half_used(room))
    # Its pods, and its store's history, have to be older than the windows first. D12 counts other tests' rooms too.
    skipped = {"D8", "D10"}  # no serving, and no right on a Lease that the room's account does not need
    found = await eventually(
        doctor.asks,
        lambda found: all(
            found[number]["state"] == ("skipped" if number in skipped else "ok")
            for number in found.keys() - {"D12"}
        ),
        what="nothing to complain about",
    )

    assert found["D12"]["state"] == "ok" or ": outside of resources.namespaces" in found["D12"]["found"]
    assert "series of DCGM_FI_PROF_GR_ENGINE_ACTIVE from job gpu-exporter" in found["D2"]["found"]
    assert found["D3"]["found"] == "1 of 1 pods with accelerators have a series (100%)"
    assert "retention 15d" in found["D5"]["found"]
    assert f"asked as system:serviceaccount:{room.namespace}:{ACCOUNT}" in found["D6"]["found"]
    assert cluster.writes_by_service_account(room.namespace, ACCOUNT) == []


async def test_a_page_instead_of_the_api_is_told_apart_from_nobody_there(doctor: Doctor) -> None:
    url = doctor.cluster.prometheus_url
    graph = await doctor.asks(AUTOSCALER_PROMETHEUS_URL=f"{url}/graph")
    nobody = await doctor.asks(AUTOSCALER_PROMETHEUS_URL="http://127.0.0.1:1")

    assert graph["D1"]["found"].startswith("something answers there that is not the query API")
    assert graph["D1"]["fix"] == f"AUTOSCALER_PROMETHEUS_URL={url}"
    assert nobody["D1"]["found"].startswith("the connection was refused")
    assert (nobody["D6"]["state"], nobody["D2"]["state"]) == ("ok", "skipped")


async def test_labels_that_name_the_exporter_are_found_and_the_proposed_mapping_mends_it(
    doctor: Doctor, tmp_path: Path
) -> None:
    room, environment = doctor.room, {"AUTOSCALER_EVIDENCE_SOURCE_JOB": OTHER_JOB}
    await play(room, room.deployment("app", boards=1), load=half_used(room))
    (held,) = await room.boards()
    own = {"pod": "dcgm-exporter-x", "namespace": "monitoring", "container": "exporter"}
    labels = {**own, "k8s_pod": held.pod, "k8s_namespace": held.namespace, "k8s_container": held.container}
    with page_exporter() as exporter:
        exporter.show(doctor.cluster, room.namespace, board_lines(held, owner=own))
        target = await eventually(
            lambda: doctor.asks(**environment),
            lambda found: "dcgm-exporter-x" in found["D3"]["found"],
            what="the exporter's own labels seen",
        )
        exporter.show(doctor.cluster, room.namespace, board_lines(held, owner=labels))
        wrong = await eventually(
            lambda: doctor.asks(**environment),
            lambda found: "k8s_pod" in found["D3"]["found"],
            what="a mapping proposed",
        )
        await mend(wrong["D3"]["fix"], tmp_path)
        mended = await doctor.asks_until("D3", "ok", AUTOSCALER_PROFILES_DIR=str(tmp_path), **environment)
        exporter.take_away(room.namespace)

    assert (
        "monitoring/dcgm-exporter-x, which holds no accelerator: the scrape target itself"
        in target["D3"]["found"]
    )
    assert target["D3"]["fix"].startswith("honorLabels: true")
    assert wrong["D3"]["fix"].split("\n")[1:] == [
        "owners:",
        "  - {pod: k8s_pod, namespace: k8s_namespace, container: k8s_container}",
    ]
    assert mended["D3"]["found"] == "1 of 1 pods with accelerators have a series (100%)"


async def mend(fix: str, folder: Path) -> None:
    """Does as it is told: a copy of the profile, with the owners that the fix has."""

    first, _, lines = fix.partition("\n")
    assert first.startswith("in a copy of profile dcgm, ")
    shipped = Path(__file__).parents[2] / "config/profiles/dcgm.yaml"
    profile = yaml.safe_load(await asyncio.to_thread(shipped.read_text))
    profile |= yaml.safe_load(lines)
    await asyncio.to_thread((folder / "dcgm.yaml").write_text, yaml.safe_dump(profile))


async def test_a_right_that_is_missing_is_named_with_the_rule_that_grants_it(
    cluster: Cluster, doctor: Doctor
) -> None:
    await cluster.apply(rights_without(doctor.room, "resourcequotas", "statefulsets"))
    found = await doctor.asks_until("D6", "failed")
    acting = await doctor.asks(AUTOSCALER_MODES_RIGHT_SIZE="apply")

    assert "list/watch resourcequotas in all namespaces" in found["D6"]["found"]
    assert (
        "- {apiGroups: [apps], resources: [statefulsets], verbs: [list, watch]}"
        "  # ClusterRole gpu-autoscaler-read, k8s/base/read.yaml"
    ) in found["D6"]["fix"]
    assert "get deployments.apps, statefulsets.apps in all namespaces" in acting["D6"]["found"]
    assert (
        "- {apiGroups: [apps], resources: [deployments, statefulsets], verbs: [patch]}"
        "  # ClusterRole gpu-autoscaler-right-size, k8s/components/right-size"
    ) in acting["D6"]["fix"]


async def test_what_is_in_the_way_is_counted(cluster: Cluster, doctor: Doctor) -> None:
    room = doctor.room
    marked = room.deployment("marked")
    marked["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shut", "namespace": room.namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "app"}}},
    }
    await cluster.apply([budget, room.pod("bare"), marked])
    await play(room, room.deployment("app"), load=half_used(room), pods=3)

    async def asks() -> dict[str, dict[str, Any]]:
        return await doctor.asks()

    found = await eventually(
        asks, lambda seen: "1 of 1 healthy" in seen["D11"]["found"], what="the budget's count of healthy pods"
    )

    assert found["D11"]["found"] == (
        "1 of 1 budgets allow nothing and cover 1 pods with accelerators: "
        f"{room.namespace}/shut (1 of 1 healthy, 1 wanted; it can never allow one)"
    )
    assert found["D12"]["state"] == "warning"
    assert "bare pods 1, do-not-disrupt marks 1" in found["D12"]["found"]
    assert "workloads with accelerators are out of reach" in found["D12"]["found"]
