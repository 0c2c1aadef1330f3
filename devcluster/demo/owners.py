"""What people do in the story: the workloads' owners start and end work, the operator says what the service may do.

All of it goes through kubectl with a person's rights, or through a file, as it would in life.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from autoscaler.model.policy_sections import Mode
from devcluster.cluster import Cluster
from devcluster.demo.cast import DAWN, DAY, NIGHT, NOON, Cast, visiting
from devcluster.demo.proof import WORKLOAD_LISTS, Key, by_key
from devcluster.demo.witness import PodStory
from devcluster.scenario import Scenario

_RUNS_A_NIGHT = 2
_PLACED_WITHIN_S = 60.0
_KEEPS_RUNNING = "devcluster.gpu-autoscaler.io/keeps-running"


class Owners:
    """The owners of the workloads of one scenario."""

    def __init__(self, cluster: Cluster, scenario: Scenario, cast: Cast) -> None:
        self._cluster = cluster
        self._scenario = scenario
        self._cast = cast
        self._runs = 0

    async def begin_day(self) -> None:
        """Traffic grows, and the helpers start: what is large first, what is small where that leaves a board."""
        await self._play(DAY)
        await self._cluster.until(
            self.are_all_available, what="a place for every large pod", timeout_s=_PLACED_WITHIN_S
        )
        await self._play(NOON)

    async def begin_night(self) -> tuple[str, ...]:
        """Traffic falls and training starts, as `kubectl create job --from=cronjob/...` does; the Jobs' names."""
        await self._play(NIGHT)
        namespace, name = self._cast.training
        first, self._runs = self._runs + 1, self._runs + _RUNS_A_NIGHT
        runs = tuple(f"{name}-{number}" for number in range(first, self._runs + 1))
        for run in runs:
            await self._cluster.kubectl(
                "create", "job", run, f"--from=cronjob/{name}", f"--namespace={namespace}"
            )
        return runs

    async def end_training(self, pods: list[PodStory]) -> None:
        """The run reaches its last step; its pods end by themselves."""
        await self._play(DAWN)
        for pod in pods:
            await self._cluster.kubectl(
                "annotate", "pod", pod.name, f"--namespace={pod.namespace}", f"{_KEEPS_RUNNING}-"
            )

    async def end_day(self) -> None:
        """What came with the day goes: disruption budgets first, since they speak of pods that are to stay."""
        objects = sorted(visiting(self._scenario), key=lambda one: one["kind"] != "PodDisruptionBudget")
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        await self._cluster.kubectl(
            "delete", "--ignore-not-found", "--cascade=foreground", "-f", "-", input=text
        )

    async def end_everything(self) -> None:
        """Whatever the story has started goes, runs of training too: they hold quota that putting back needs."""
        await self.end_day()
        namespace, name = self._cast.training
        runs = [f"{name}-{number}" for number in range(1, self._runs + 1)]
        if runs:
            await self._cluster.kubectl(
                "delete",
                "job",
                *runs,
                f"--namespace={namespace}",
                "--ignore-not-found",
                "--cascade=foreground",
            )

    async def workloads(self) -> dict[Key, dict[str, Any]]:
        """What every workload's owner wrote, as it is stored now."""
        found: dict[Key, dict[str, Any]] = {}
        for kind, path in WORKLOAD_LISTS.items():
            found |= by_key(kind, (await self._cluster.api.get(path))["items"])
        return found

    async def are_all_available(self) -> bool:
        """Whether every Deployment has the replicas that it wants, up to date and ready."""
        items = (await self._cluster.api.get(WORKLOAD_LISTS["Deployment"]))["items"]
        return all(_is_available(item) for item in items)

    async def _play(self, name: str) -> None:
        stage = self._scenario.stages[name]
        await self._cluster.exporter.declare(stage.loads, time_scale=self._scenario.time_scale)
        if stage.objects:
            await self._cluster.apply(stage.objects)


def _is_available(item: dict[str, Any]) -> bool:
    status, wanted = item.get("status", {}), item["spec"].get("replicas", 1)
    counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration", 0) >= item["metadata"]["generation"] and counts == {wanted}


class Operator:
    """Who runs the service: its policy is a file, which the service reads again when it changes."""

    def __init__(self, shipped_policy: Path, policy_file: Path) -> None:
        self.policy_file = policy_file
        self._policy: dict[str, Any] = yaml.safe_load(shipped_policy.read_text())

    def allow(self, mode: Mode) -> None:
        """Writes the policy with this mode, in one step, as a ConfigMap's volume changes."""
        pending = self.policy_file.with_suffix(".pending")
        pending.write_text(yaml.safe_dump({**self._policy, "modes": {"default": mode}}, sort_keys=False))
        pending.replace(self.policy_file)
