from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from devcluster.exporter.exposition import BoardReading, Holder, board_uuid, power_w, render

pytestmark = pytest.mark.unit

HOLDER = Holder(namespace="ns", pod="pod-0", container="main", profiles=("dcgm",))


def reading(index: int = 0, **changes: Any) -> BoardReading:
    fields: dict[str, Any] = {
        "node": "gpu-a100-0",
        "index": index,
        "model": "NVIDIA A100-SXM4-80GB",
        "memory_mib": 81920,
        "engine": 0.555,
        "used_memory_mib": 20000,
        "energy_mj": 12345,
        "holder": HOLDER,
    }
    return BoardReading(**(fields | changes))


def samples(text: str) -> dict[tuple[str, str | None], Sample]:
    return {
        (sample.name.removesuffix("_total"), sample.labels.get("gpu", sample.labels.get("pod"))): sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_text_is_what_prometheus_reads() -> None:
    found = samples(render([reading(0), reading(1, holder=None, engine=0.0)]))

    assert {name for name, _ in found} == {
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    }
    assert found["DCGM_FI_DEV_GPU_UTIL", "0"].value == 56
    assert found["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0"].value == 0.555
    assert found["DCGM_FI_DEV_FB_USED", "0"].value == 20000
    assert found["DCGM_FI_DEV_FB_FREE", "0"].value == 61920
    assert found["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "0"].value == 12345


def test_a_held_board_has_the_labels_of_the_real_exporter() -> None:
    labels = samples(render([reading(3)]))["DCGM_FI_DEV_GPU_UTIL", "3"].labels

    assert labels == {
        "gpu": "3",
        "UUID": board_uuid("gpu-a100-0", 3),
        "pci_bus_id": "00000000:13:00.0",
        "device": "nvidia3",
        "modelName": "NVIDIA A100-SXM4-80GB",
        "hostname": "gpu-a100-0",
        "DCGM_FI_DRIVER_VERSION": "570.133.20",
        "pod": "pod-0",
        "namespace": "ns",
        "container": "main",
    }


def test_a_board_that_nobody_holds_has_no_pod_labels() -> None:
    labels = samples(render([reading(holder=None)]))["DCGM_FI_DEV_GPU_UTIL", "0"].labels

    assert not {"pod", "namespace", "container"} & set(labels)


def test_the_seed_profile_is_one_series_per_pod_in_percent_over_its_boards() -> None:
    holder = Holder(namespace="ns", pod="pod-0", container="main", profiles=("seed",))
    text = render([reading(0, holder=holder, engine=0.5), reading(1, holder=holder, engine=0.1)])

    (sample,) = samples(text).values()

    assert sample.name == "gpu_gpu_utilization"
    assert sample.labels == {"pod": "pod-0", "namespace": "ns"}
    assert sample.value == pytest.approx(30)


def test_a_workload_may_publish_both_profiles() -> None:
    holder = Holder(namespace="ns", pod="pod-0", container="main", profiles=("dcgm", "seed"))
    names = {name for name, _ in samples(render([reading(holder=holder)]))}

    assert {"DCGM_FI_DEV_GPU_UTIL", "gpu_gpu_utilization"} <= names


def test_an_empty_fleet_is_an_empty_text() -> None:
    assert render([]) == ""


def test_a_strange_label_value_is_escaped() -> None:
    sample = samples(render([reading(model='A "quoted" \\ model')]))["DCGM_FI_DEV_GPU_UTIL", "0"]

    assert sample.labels["modelName"] == 'A "quoted" \\ model'


def test_boards_of_all_nodes_have_identities_of_their_own_that_never_change() -> None:
    uuids = {board_uuid(f"node-{node}", index) for node in range(10) for index in range(8)}

    assert len(uuids) == 80
    assert board_uuid("node-0", 0) == board_uuid("node-0", 0)
    assert all(uuid.startswith("GPU-") for uuid in uuids)


def test_power_rises_with_activity_and_with_loaded_memory() -> None:
    assert power_w(0.0, 4) < power_w(0.0, 20000) < power_w(0.5, 20000) < power_w(1.0, 20000)
