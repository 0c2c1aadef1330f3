"""Awkward but true answers over real sockets: renamed owner labels, gaps, and a device that has several series."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from contract.observe.test_reader import ENGINE, SPANS, Store, reading_from, unknown
from unit.observe.observed import pod, stores

from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.assemble import assemble

pytestmark = pytest.mark.contract


class Rows(Store):
    """Rows with labels of their own; `said` are texts by a word of the query, else every row has its own value."""

    def __init__(self, *labels: Mapping[str, str], said: Mapping[str, list[str]] | None = None) -> None:
        super().__init__(ENGINE)
        self.labels = labels
        self.said = dict(said or {})

    def _rows(self, query: str) -> list[dict[str, Any]]:
        whole = super()._rows(query)
        if not whole or " by (job)" in query or " by (" not in query:
            return whole
        found = re.match(r"\w+ by \((.*?)\)", query)
        assert found is not None
        listed = found.group(1).split(", ")
        texts = next(
            (texts for word, texts in self.said.items() if word in query),
            [whole[0]["value"][1]] * len(self.labels),
        )
        return [
            {"metric": {name: labels[name] for name in listed if name in labels}, "value": [self.now_s, text]}
            for labels, text in zip(self.labels, texts, strict=True)
        ]


async def joined(store: Store) -> Snapshot:
    async with reading_from(store) as reader:
        reading = await reader.read(SPANS, api_now_ms=unknown)
    assert reading.fault == ""
    return assemble(stores(pod("p"), pod("exporter", gpus=0)).freeze(), reading, now_ms=reading.store_ms)


PLAIN = {"UUID": "GPU-A", "namespace": "ml", "pod": "p", "container": "main", "instance": "10.0.0.1:9400"}
EXPORTED = {
    "UUID": "GPU-A",
    "namespace": "ml",
    "pod": "exporter",
    "container": "dcgm",
    "exported_namespace": "ml",
    "exported_pod": "p",
    "exported_container": "main",
}


@pytest.mark.parametrize("labels", [PLAIN, EXPORTED], ids=["pod", "exported_pod"])
async def test_the_owner_is_the_pod_that_the_exporter_names_and_never_the_exporter(
    labels: Mapping[str, str],
) -> None:
    seen = await joined(Rows(labels))

    assert [seen.pods[i].name for i in seen.holders.pod] == ["p"]
    assert (seen.holders.device, seen.holders.container) == (("a",), ("main",))
    assert seen.telemetry.unowned == ()


async def test_a_row_that_names_only_the_exporter_is_nobodys() -> None:
    seen = await joined(Rows({**PLAIN, "pod": "exporter"}))

    assert len(seen.holders) == 0
    assert [row.device for row in seen.telemetry.unowned] == ["a"]


async def test_a_series_that_ended_keeps_the_time_of_its_last_sample() -> None:
    ended_s = 1_800_000_000 - 600
    seen = await joined(Rows(PLAIN, said={"timestamp": [str(ended_s)], "count_over_time": ["80"]}))

    assert (seen.holders.last_ms[0], seen.holders.samples[0]) == (ended_s * 1000, 80)
    assert seen.telemetry.lag_ms == 600_000


async def test_two_series_of_one_device_after_an_exporter_restart_are_one_row() -> None:
    now_s = 1_800_000_000
    seen = await joined(
        Rows(
            PLAIN,
            {**PLAIN, "instance": "10.0.0.2:9400"},
            said={
                "sum_over_time((max by": ["117", "117"],
                "timestamp": [str(now_s - 900), str(now_s - 5)],
                "count_over_time": ["60", "60"],
                "sum_over_time": ["6", "54"],
                "max_over_time": ["0.2", "0.95"],
            },
        )
    )

    assert len(seen.holders) == 1
    assert (seen.holders.samples[0], seen.holders.mean[0], seen.holders.peak[0]) == (117, 5000, 9500)
    assert seen.holders.last_ms[0] == (now_s - 5) * 1000


async def test_two_scrapers_that_miss_the_same_half_are_half_covered() -> None:
    seen = await joined(
        Rows(
            PLAIN,
            {**PLAIN, "instance": "10.0.0.2:9400"},
            said={"sum_over_time((max by": ["61", "61"], "count_over_time": ["60", "61"]},
        )
    )

    assert seen.holders.samples[0] == 61
