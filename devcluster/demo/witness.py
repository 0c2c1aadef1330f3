"""What every pod, quota and disruption budget of the cluster went through.

Events come in as the API server tells them, so a state that lasts for a moment is seen as well as one that stays.
Knows nothing of the service: what it saw and what must never be seen are the same for whoever caused it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from devcluster.demo.wire import Budget, Pod, Quota

_ENDED = frozenset({"Succeeded", "Failed"})
_PREEMPTED = "PreemptionByScheduler"


@dataclass
class PodStory:
    """One pod, from its first sight on; times are the watcher's."""

    namespace: str
    name: str
    uid: str
    priority_class: str
    labels: Mapping[str, str]
    boards: int
    phase: str = ""
    node: str = ""
    nominated: str = ""
    unschedulable_s: float | None = None
    bound_s: float | None = None
    gone: bool = False

    @property
    def full_name(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def holds(self) -> bool:
        """Whether it takes boards of a node now."""
        return bool(self.node) and not self.gone and self.phase not in _ENDED

    @property
    def waited_s(self) -> float | None:
        """From the scheduler's first no to its yes; None for a pod that never heard a no, or has no place yet."""
        if self.unschedulable_s is None or self.bound_s is None:
            return None
        return self.bound_s - self.unschedulable_s


@dataclass
class Witness:
    """Pods by uid (those that are gone too), the highest use of each quota, and every breach of a rule, once."""

    resource: str
    capacity: Mapping[str, int]
    most_per_container: Mapping[str, int]
    pods: dict[str, PodStory] = field(default_factory=dict)
    quota_peaks: dict[str, tuple[int, int]] = field(default_factory=dict)
    breaches: dict[str, None] = field(default_factory=dict)
    _healthy: set[str] = field(default_factory=set)

    def pod_seen(self, pod: Pod, now_s: float) -> None:
        """A pod is new or changed."""
        story = self.pods.get(pod.metadata.uid)
        if story is None:
            story = self.pods[pod.metadata.uid] = self._begin(pod)
        story.phase, story.node = pod.status.phase, pod.spec.node_name
        story.nominated = pod.status.nominated_node_name or story.nominated
        if story.node and story.bound_s is None:
            story.bound_s = now_s
        for condition in pod.status.conditions or []:
            if condition.reason == "Unschedulable" and condition.status == "False" and not story.node:
                story.unschedulable_s = now_s if story.unschedulable_s is None else story.unschedulable_s
            if condition.reason == _PREEMPTED:
                self.breaches[f"the scheduler preempted {story.full_name}"] = None

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted."""
        if uid in self.pods:
            self.pods[uid].gone = True

    def pods_listed(self, pods: Iterable[Pod], now_s: float) -> None:
        """All pods that there are."""
        present = set()
        for pod in pods:
            present.add(pod.metadata.uid)
            self.pod_seen(pod, now_s)
        for uid in self.pods.keys() - present:
            self.pod_gone(uid)

    def quota_seen(self, quota: Quota) -> None:
        """A quota is new or changed."""
        for key, hard in (quota.status.hard or {}).items():
            if key != f"requests.{self.resource}":
                continue
            name = f"{quota.metadata.namespace}/{quota.metadata.name} {key}"
            used, allowed = int((quota.status.used or {}).get(key, "0")), int(hard)
            self.quota_peaks[name] = (max(used, self.quota_peaks.get(name, (0, 0))[0]), allowed)
            if used > allowed:
                self.breaches[f"quota {name}: {used} of {allowed} used"] = None

    def budget_seen(self, budget: Budget) -> None:
        """A disruption budget is new or changed; it counts from the moment at which it is first met."""
        name, status = f"{budget.metadata.namespace}/{budget.metadata.name}", budget.status
        if status.current_healthy >= status.desired_healthy > 0:
            self._healthy.add(budget.metadata.uid)
        elif status.desired_healthy > 0 and budget.metadata.uid in self._healthy:
            told = f"{status.current_healthy} healthy of {status.desired_healthy} at least"
            self.breaches[f"disruption budget {name}: {told}"] = None

    def free_boards(self) -> dict[str, int]:
        """Boards that no pod holds, by node."""
        held: dict[str, int] = defaultdict(int)
        for pod in self.pods.values():
            if pod.holds:
                held[pod.node] += pod.boards
        return {node: total - held[node] for node, total in self.capacity.items()}

    def named(self, namespace: str, name: str) -> PodStory | None:
        """The newest pod of a name."""
        found = [pod for pod in self.pods.values() if (pod.namespace, pod.name) == (namespace, name)]
        return found[-1] if found else None

    def labelled(self, namespace: str, label: str, value: str) -> list[PodStory]:
        """The pods with a label that are still there."""
        return [
            pod
            for pod in self.pods.values()
            if not pod.gone and pod.namespace == namespace and pod.labels.get(label) == value
        ]

    def _begin(self, pod: Pod) -> PodStory:
        metadata, spec = pod.metadata, pod.spec
        boards = [int((one.resources.limits or {}).get(self.resource, 0)) for one in spec.containers]
        most = self.most_per_container.get(metadata.namespace)
        if most is not None and max(boards, default=0) > most:
            self.breaches[
                f"limit range: a container of {metadata.namespace}/{metadata.name} has {max(boards)} boards"
            ] = None
        return PodStory(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            priority_class=spec.priority_class_name,
            labels=metadata.labels or {},
            boards=sum(boards),
        )
