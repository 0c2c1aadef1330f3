"""Whose pods those were that the API server no longer knows: told by the names that controllers give their pods.

A name is a hint, not a proof, so every doubt ends in "nobody": a name that fits two workloads, one that the API server's
limit has cut too short to be read, an operator's own naming.
Sources: kubernetes `apiserver/pkg/storage/names/generate.go` (five random characters after at most 58), `pkg/controller`
(ReplicaSet, StatefulSet, Job, CronJob) and `apimachinery/pkg/util/rand` (the alphabet).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from autoscaler.model.cluster import WorkloadRef

_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like one: what the API server and the controllers draw names from."""
_SUFFIX: Final = 5
_MAX_STEM: Final = 58
_RANDOM: Final = re.compile(rf"[{_SAFE}]{{{_SUFFIX}}}", re.ASCII)
_HASH: Final = re.compile(rf"(?P<name>.+)-[{_SAFE}]{{1,10}}", re.ASCII)
_ORDINAL: Final = re.compile(r"(?P<name>.+)-(?:0|[1-9]\d{0,8})", re.ASCII)
_MINUTES: Final = re.compile(r"(?P<name>.+)-[1-9]\d{7}", re.ASCII)
"""CronJob names a Job by the minutes since 1970 of its schedule: eight digits from 1989 to 2160."""

Unknown = Literal["unknown", "ambiguous"]
Found: TypeAlias = WorkloadRef | Unknown


class Lineage(msgspec.Struct, frozen=True):
    """The live workloads by namespace and name, as pods of the past are looked up in them.

    `stems` are what pods are called after, as "namespace/stem": ReplicaSets and Jobs, with the workload above them.
    """

    workloads: frozenset[WorkloadRef]
    deployments: Mapping[str, WorkloadRef]
    stateful_sets: Mapping[str, WorkloadRef]
    cron_jobs: Mapping[str, WorkloadRef]
    stems: Mapping[str, frozenset[WorkloadRef]]

    @classmethod
    def of(
        cls, workloads: Iterable[WorkloadRef], *, makers: Iterable[tuple[str, WorkloadRef]] = ()
    ) -> "Lineage":
        """From the live workloads, and the ReplicaSets and Jobs below them by name with the workload at the top."""
        refs = frozenset(workloads)
        by_kind: dict[str, dict[str, WorkloadRef]] = {"Deployment": {}, "StatefulSet": {}, "CronJob": {}}
        named = list(makers)
        for ref in refs:
            if (ref.group, ref.kind) in {("apps", "ReplicaSet"), ("batch", "Job")}:
                named.append((ref.name, ref))
            elif ref.group in {"apps", "batch"} and ref.kind in by_kind:
                by_kind[ref.kind][f"{ref.namespace}/{ref.name}"] = ref
        stems: dict[str, set[WorkloadRef]] = {}
        for name, ref in named:
            stems.setdefault(f"{ref.namespace}/{_stem(name)}", set()).add(ref)
        return cls(
            workloads=refs,
            deployments=by_kind["Deployment"],
            stateful_sets=by_kind["StatefulSet"],
            cron_jobs=by_kind["CronJob"],
            stems={stem: frozenset(refs) for stem, refs in stems.items()},
        )

    def of_pod(self, namespace: str, pod: str) -> Found:
        """The workload that a pod of this name was one of."""
        found = frozenset(self._candidates(namespace, pod))
        if len(found) == 1:
            return next(iter(found))
        return "ambiguous" if found else "unknown"

    def _candidates(self, namespace: str, pod: str) -> Iterable[WorkloadRef]:
        if match := _ORDINAL.fullmatch(pod):
            yield from _one(self.stateful_sets, namespace, match["name"])
        stem, suffix = pod[:-_SUFFIX], pod[-_SUFFIX:]
        if not _RANDOM.fullmatch(suffix):
            return
        yield from self.stems.get(f"{namespace}/{stem}", ())
        if not stem.endswith("-"):
            return
        name = stem[:-1]
        if match := _HASH.fullmatch(name):
            yield from _one(self.deployments, namespace, match["name"])
        if match := _ORDINAL.fullmatch(name):
            # An indexed Job puts the index between its name and the random part.
            yield from self.stems.get(f"{namespace}/{_stem(match['name'])}", ())
        for job in (name, match["name"] if match else ""):
            if minutes := _MINUTES.fullmatch(job):
                yield from _one(self.cron_jobs, namespace, minutes["name"])


def _one(table: Mapping[str, WorkloadRef], namespace: str, name: str) -> Iterable[WorkloadRef]:
    found = table.get(f"{namespace}/{name}")
    return () if found is None else (found,)


def _stem(name: str) -> str:
    """What generated pod names begin with: the maker's name and a dash, cut to what leaves room for the random part."""
    return f"{name}-"[:_MAX_STEM]
