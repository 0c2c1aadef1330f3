"""One scrape and a file of objects, judged offline: the whole way from the text to the verdicts."""

import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from autoscaler.cli.commands import main
from autoscaler.model.exposition import ExpositionReport, PodJudged
from autoscaler.model.policy import Policy, policy_from_dict
from autoscaler.model.reasons import Reason
from autoscaler.observe.profiles import load_profiles, parse_profile
from autoscaler.observe.serving import load_serving_profiles
from autoscaler.service.config_root import shipped_config
from autoscaler.service.exposition import judge_exposition, judge_files
from autoscaler.service.faults import ServiceError
from autoscaler.service.settings import load_settings
from tests.fixtures.objects import NVIDIA, exporter_text, listed, node, pod
from tests.fixtures.verdict_worlds import WORLDS, A, B, M, VerdictWorld, X

pytestmark = pytest.mark.contract

DOUBTS = {
    Reason.EVIDENCE_ABSENT,
    Reason.EVIDENCE_CONTRADICTORY,
    Reason.EVIDENCE_PARTIAL,
    Reason.EVIDENCE_UNATTRIBUTED,
    Reason.SHARED_BOARD,
}
SERVERS = {"vllm", "vllm-old", "tgi", "triton", "sglang"}
PROFILES = load_profiles(shipped_config() / "profiles")
SERVING = load_serving_profiles(shipped_config() / "profiles" / "serving")


async def judged(text: str, objects: str | None = None, policy: Policy | None = None) -> ExpositionReport:
    return await judge_exposition(text, objects, PROFILES, policy or Policy(), serving=SERVING)


def by_name(report: ExpositionReport) -> dict[str, PodJudged]:
    return {f"{row.namespace}/{row.pod}": row for row in report.pods}


def told(report: ExpositionReport, words: str) -> bool:
    return any(words in note for note in report.notes)


def gpu_util(value: float | str = 0, *, pod_name: str = "app-0", **labels: str) -> str:
    pairs = {"UUID": "GPU-a", "pod": pod_name, "namespace": "dev", "hostname": "n1", **labels}
    stated = ",".join(f'{label}="{text}"' for label, text in pairs.items())
    return f"DCGM_FI_DEV_GPU_UTIL{{{stated}}} {value}\n"


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
async def test_every_exporter_is_judged_as_the_reference_says(world: VerdictWorld) -> None:
    pods = by_name(await judged(exporter_text(world.text), listed(*world.objects)))

    assert set(pods) == set(world.verdicts)
    assert {name: row.verdict for name, row in pods.items() if row.verdict not in world.verdicts[name]} == {}


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
async def test_a_verdict_was_measured_or_is_a_servers_word_and_all_else_has_its_reason(
    world: VerdictWorld,
) -> None:
    report = await judged(exporter_text(world.text), listed(*world.objects))

    for row in report.pods:
        assert row.detail
        if row.reason != "Measured":
            assert Reason(row.reason) in DOUBTS
            assert row.verdict == "unknown" or world.text in SERVERS


async def test_a_servers_word_is_in_the_detail() -> None:
    report = await judged(exporter_text("vllm"), listed(pod(X, node="n1"), pod(M, node="n1")))

    assert {name: (row.verdict, row.reason, row.detail) for name, row in by_name(report).items()} == {
        X: ("busy", "EvidenceAbsent", "no sample in 30m; vllm: waiting 60, running 21, counter moves 0"),
        M: ("idle", "EvidenceAbsent", "no sample in 30m; vllm: waiting 0, running 0, counter moves 0"),
    }


async def test_the_json_of_a_pod_has_its_fixed_keys() -> None:
    report = await judged(
        exporter_text("dcgm-current"), listed(pod(B, node="gpu-node-1", container="notebook"))
    )
    (row,) = msgspec.to_builtins(report)["pods"]

    assert (row["namespace"], row["pod"], row["verdict"]) == ("team-nlp", "notebook-b-0", "idle")
    assert row["signals"][0] == {
        "signal": "DCGM_FI_PROF_SM_ACTIVE"
        if "SM_ACTIVE" in row["signals"][0]["signal"]
        else "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "device": "00000002-1111-4222-8333-000000000002",
        "value": 0.0,
        "unit": "ratio",
    }
    assert {"signal": "DCGM_FI_DEV_POWER_USAGE", "value": 62.31, "unit": "W"}.items() <= row["signals"][
        -1
    ].items()


async def test_each_family_is_shown_with_its_scale_owner_and_device() -> None:
    (read,) = (await judged(exporter_text("dcgm-exported-labels"))).profiles

    assert (read.profile, read.series, read.device_label, read.live) == ("dcgm", 12, "UUID", True)
    assert read.owner_labels == ("exported_pod", "exported_namespace", "exported_container")
    assert [(row.metric, row.scale, row.unit) for row in read.metrics] == [
        ("DCGM_FI_DEV_GPU_UTIL", "0-100", "%"),
        ("DCGM_FI_DEV_FB_USED", "amount", "MiB"),
        ("DCGM_FI_DEV_POWER_USAGE", "amount", "W"),
    ]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("dcgm-current", ("pod", "namespace", "container")),
        ("dcgm-timeslice-vgpu", ("pod", "namespace", "container", "pod_uid")),
        ("dcgm-mig-oldnames", ("pod_name", "pod_namespace", "container_name")),
        ("huawei-npu", ("pod_name", "namespace", "container_name")),
        ("nvidia-gpu-exporter", ()),
        ("vllm", ("pod", "namespace")),
    ],
)
async def test_owner_labels_are_those_that_name_a_pod_in_this_text(
    name: str, labels: tuple[str, ...]
) -> None:
    assert (await judged(exporter_text(name))).profiles[0].owner_labels == labels


async def test_a_servers_signals_are_shown_with_the_pod() -> None:
    report = await judged(exporter_text("triton"), listed(pod("serving/triton-0", node="n1")))
    (row,) = report.pods

    assert [(s.signal, s.value) for s in row.signals] == [
        ("nv_inference_pending_request_count", 13.0),
        ("nv_inference_request_success", 88330.0),
    ]


async def test_values_that_are_no_numbers_are_shown_by_name_and_counted() -> None:
    report = await judged(gpu_util("NaN") + gpu_util("-Inf", pod_name="app-1", UUID="GPU-b"))
    pods = by_name(report)

    assert [pods[f"dev/app-{i}"].signals[0].value for i in (0, 1)] == ["NaN", "-Inf"]
    assert {pods[f"dev/app-{i}"].verdict for i in (0, 1)} == {"unknown"}
    assert report.dropped == {"infinite": 1, "not-a-number": 1}


async def test_a_pod_without_series_is_unknown_for_absent_evidence() -> None:
    report = await judged(gpu_util(50), listed(pod("dev/app-0", node="n1"), pod("dev/silent-0", node="n2")))
    silent = by_name(report)["dev/silent-0"]

    assert (silent.verdict, silent.reason, silent.signals) == ("unknown", "EvidenceAbsent", ())


async def test_series_of_pods_that_the_objects_lack_are_ghosts_and_not_judged() -> None:
    report = await judged(
        exporter_text("dcgm-current"), listed(pod(B, node="gpu-node-1", container="notebook"))
    )

    assert list(by_name(report)) == [B]
    assert [(g.namespace, g.pod, g.profile, len(g.devices)) for g in report.ghosts] == [
        ("team-vision", "trainer-a-0", "dcgm", 2)
    ]


async def test_a_pod_of_another_uid_is_a_ghost() -> None:
    report = await judged(gpu_util(50, pod_uid="old"), listed(pod("dev/app-0", node="n1", uid="new")))

    assert by_name(report)["dev/app-0"].verdict == "unknown"
    assert [ghost.pod for ghost in report.ghosts] == ["app-0"]


async def test_a_pod_that_states_no_uid_has_that_of_its_series() -> None:
    objects = [pod("dev/app-0", node="n1")]
    objects[0]["metadata"]["uid"] = ""

    assert (
        by_name(await judged(gpu_util(50, pod_uid="its-own"), listed(*objects)))["dev/app-0"].verdict
        == "busy"
    )


async def test_a_pod_without_accelerators_is_neither_judged_nor_a_ghost() -> None:
    plain = {"kind": "Pod", "metadata": {"namespace": "dev", "name": "app-0"}, "spec": {"nodeName": "n1"}}
    report = await judged(gpu_util(50), listed(plain))

    assert (report.pods, report.ghosts) == ((), ())


async def test_the_exporters_own_labels_are_no_pod() -> None:
    report = await judged(exporter_text("dcgm-exported-labels"))

    assert set(by_name(report)) == {A, B}
    assert report.ghosts == ()
    assert [device.device for device in report.unowned] == ["00000003-1111-4222-8333-000000000003"]


async def test_without_objects_pods_hold_what_their_series_name_and_that_is_said() -> None:
    report = await judged(exporter_text("dcgm-mig"))

    assert {name: (row.verdict, row.held) for name, row in by_name(report).items()} == {
        "serving/infer-small-0": ("busy", {"nvidia.com/mig-assumed": 1}),
        "serving/infer-small-1": ("idle", {"nvidia.com/mig-assumed": 1}),
        "team-nlp/finetune-c-0": ("busy", {"nvidia.com/mig-assumed": 1}),
        A: ("busy", {NVIDIA: 1}),
    }
    assert told(report, "assumed to hold exactly the devices")
    assert not told(await judged(gpu_util(), listed(pod("dev/app-0", node="n1"))), "assumed")


async def test_what_counts_as_an_accelerator_comes_from_the_policy() -> None:
    policy = policy_from_dict({"resources": {"boards": ["acme.com/npu"]}})
    objects = listed(pod("dev/app-0", node="n1", resource="acme.com/npu"), pod("dev/app-1", node="n1"))

    assert list(by_name(await judged(gpu_util(50), objects, policy))) == ["dev/app-0"]
    assert (await judged(gpu_util(50), None, policy)).pods[0].held == {"acme.com/npu": 1}
    nothing = policy_from_dict({"resources": {"boards": [], "slices": []}})
    assert (await judged(gpu_util(50), None, nothing)).pods == ()


async def test_a_busy_board_without_owner_makes_its_nodes_idle_pods_doubtful() -> None:
    stray = 'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-z",hostname="n1"} 90\n'
    objects = listed(pod("dev/app-0", node="n1"), node("n1", nvidia_com__gpu=2))

    assert by_name(await judged(gpu_util(0), objects))["dev/app-0"].verdict == "idle"
    assert by_name(await judged(gpu_util(0) + stray, objects))["dev/app-0"].reason == "EvidenceContradictory"


async def test_pins_of_scrape_jobs_hold_only_for_a_text_that_was_scraped() -> None:
    policy = policy_from_dict({"evidence": {"sourceJob": "dcgm-exporter"}})

    raw = await judged(gpu_util(50), None, policy)
    scraped = await judged(gpu_util(50, job="dcgm-exporter", instance="n1:9400"), None, policy)
    other = await judged(gpu_util(50, job="somebody"), None, policy)

    assert [row.verdict for row in raw.pods] == ["busy"]
    assert told(raw, "pins of scrape jobs")
    assert [row.verdict for row in scraped.pods] == ["busy"]
    assert not told(scraped, "pins of scrape jobs")
    assert other.pods == ()


async def test_a_profiles_own_match_holds_only_for_a_text_that_was_scraped() -> None:
    text = "name: x\nscope: pod\nsignals: [{metric: use, kind: util, full: 100}]\nmatch: {job: ours}\n"
    profile = parse_profile(f"{text}owners: [{{pod: pod, namespace: namespace}}]\n", where="x")
    series = 'use{pod="p",namespace="d"} 50\n'

    raw = await judge_exposition(series, None, [profile], Policy())
    scraped = await judge_exposition(series.replace("{", '{job="theirs",'), None, [profile], Policy())

    assert [row.verdict for row in raw.pods] == ["busy"]
    assert scraped.pods == ()


async def test_several_scrape_jobs_are_not_believed_and_that_is_said() -> None:
    report = await judged(gpu_util(50, job="one") + gpu_util(0, job="two", UUID="GPU-b"))

    assert report.pods == ()
    assert told(report, "several scrape jobs publish")


async def test_an_energy_counter_that_stands_still_in_one_scrape_is_not_held_against_the_exporter() -> None:
    energy = gpu_util(9_000_000).replace("GPU_UTIL", "TOTAL_ENERGY_CONSUMPTION")
    report = await judged(gpu_util(0) + energy)

    assert by_name(report)["dev/app-0"].verdict == "idle"
    assert told(report, "counters stand still")
    assert "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" in [row.metric for row in report.profiles[0].metrics]


async def test_bad_lines_are_named_and_the_rest_is_judged() -> None:
    report = await judged(f"{gpu_util(50)}nonsense{{\n{gpu_util(50)}")

    assert by_name(report)["dev/app-0"].verdict == "busy"
    assert report.dropped == {"bad-line": 1, "repeated-series": 1}
    assert told(report, "line 2 is no sample")


async def test_many_bad_lines_are_counted_after_the_first() -> None:
    report = await judged("nonsense{\n" * 25)

    assert report.dropped == {"bad-line": 25}
    assert told(report, "5 more lines are no samples")
    assert told(report, "the text has no sample")


async def test_metrics_of_no_profile_are_named() -> None:
    assert told(await judged(gpu_util() + "my_own_use 3\n"), "metrics of no profile: my_own_use")


async def test_a_profile_none_of_whose_signals_has_series_is_shown_as_not_live() -> None:
    report = await judged(gpu_util(100).replace("GPU_UTIL", "FB_USED"))

    assert [(row.profile, row.live) for row in report.profiles] == [("dcgm", False)]
    assert report.pods == ()


async def test_objects_of_other_kinds_and_broken_ones_are_named() -> None:
    config = {"kind": "ConfigMap", "metadata": {"name": "x"}}
    broken = {"kind": "Pod", "metadata": {"namespace": "dev", "name": "bad"}, "spec": {"containers": 3}}
    waiting = {**pod("dev/later-0", node=""), "status": {"phase": "Pending"}}
    report = await judged(gpu_util(50), listed(pod("dev/app-0", node="n1"), config, broken, waiting))

    assert list(by_name(report)) == ["dev/app-0"]
    assert told(report, "kinds that are not read: 1 ConfigMap")
    assert told(report, "not read: Pod dev/bad")
    assert told(report, "1 pending pods hold nothing yet")


async def test_equal_input_gives_an_equal_report() -> None:
    text, objects = (
        exporter_text("hami-vgpu"),
        listed(*next(w.objects for w in WORLDS if w.text == "hami-vgpu")),
    )
    lines = text.splitlines()

    report = await judged(text, objects)

    assert await judged(text, objects) == report
    assert sorted((await judged("\n".join(reversed(lines)), objects)).pods, key=str) != []
    assert {n: r.verdict for n, r in by_name(await judged("\n".join(reversed(lines)), objects)).items()} == {
        n: r.verdict for n, r in by_name(report).items()
    }


@dataclass
class Stdin:
    buffer: io.BytesIO


async def test_files_are_read_and_standard_input_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, objects = tmp_path / "page.prom", tmp_path / "objects.json"
    text.write_bytes(b"\xef\xbb\xbf" + gpu_util(50).encode() + b"\xff\n")
    objects.write_text(listed(pod("dev/app-0", node="n1")), encoding="utf-8")
    settings = load_settings({})

    report = await judge_files(text, objects, settings, Policy())
    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(text.read_bytes())))
    again = await judge_files(Path("-"), objects, settings, Policy())

    assert by_name(report)["dev/app-0"].verdict == "busy"
    assert again == report


def test_the_command_needs_no_cluster_and_no_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, objects = tmp_path / "page.prom", tmp_path / "objects.json"
    text.write_text(gpu_util(50) + "nonsense{\n", encoding="utf-8")
    objects.write_text(listed(pod("dev/app-0", node="n1")), encoding="utf-8")

    code = main(["doctor", "--exposition", str(text), "--objects", str(objects), "-o", "json"])
    (row,) = json.loads(capsys.readouterr().out)["pods"]

    assert (code, row["namespace"], row["pod"], row["verdict"]) == (0, "dev", "app-0", "busy")


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [("{", "the objects cannot be read"), (None, "cannot be read: No such file")],
)
async def test_a_file_that_cannot_be_read_is_one_sentence(
    objects: str | None, sentence: str, tmp_path: Path
) -> None:
    text, file = tmp_path / "page.prom", tmp_path / "objects.json"
    text.write_text(gpu_util(50), encoding="utf-8")
    if objects is not None:
        file.write_text(objects, encoding="utf-8")

    with pytest.raises(ServiceError, match=re.escape(sentence)):
        await judge_files(text, file, load_settings({}), Policy())


async def test_a_thousand_pods_are_each_judged_by_their_own_series() -> None:
    numbers = range(1000)
    text = "".join(
        gpu_util(i % 100, pod_name=f"app-{i}", UUID=f"GPU-{i}", hostname=f"n{i // 8}") for i in numbers
    )
    report = await judged(text, listed(*(pod(f"dev/app-{i}", node=f"n{i // 8}") for i in numbers)))
    by_use = {row.pod: row.verdict for row in report.pods}

    assert len(by_use) == 1000
    assert [by_use[f"app-{i}"] for i in (700, 701, 702, 730, 799)] == [
        "idle",
        "idle",
        "under-used",
        "busy",
        "saturated",
    ]
