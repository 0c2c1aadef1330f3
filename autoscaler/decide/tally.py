"""What the accepted proposals of one plan use up together, so that limits hold for their sum."""

from dataclasses import dataclass, field

from autoscaler.decide.world import POD_SEATS, World
from autoscaler.model.policy import DAY_MS, HOUR_MS
from autoscaler.model.resources import Vector, add, subtract


@dataclass(frozen=True, slots=True)
class Effect:
    """What one proposal uses while it is carried out: surge pods by node, quota, disruptions, boards changed and pods ended.

    Evictions of one seat are sent one after the other: together they are one act in flight.
    """

    namespace: str
    surge_nodes: tuple[str, ...] = ()
    surge_demand: Vector = field(default_factory=dict)
    quota: Vector = field(default_factory=dict)
    disruptions: tuple[tuple[str, int], ...] = ()
    boards: int = 0
    given_to: str = ""
    in_flight: int = 1
    method: str = ""
    pods: int = 0


@dataclass(frozen=True)
class Tally:
    """The sum of the effects accepted so far; immutable, `after` gives the next one."""

    free: dict[str, Vector]
    quota: dict[str, Vector]
    disruptions: dict[tuple[str, str], int]
    boards_hour: int
    boards_day: int
    namespace_boards: dict[str, int]
    in_flight: int
    method_boards: dict[str, int] = field(default_factory=dict)
    pods_hour: int = 0
    planned: int = 0

    @classmethod
    def of(cls, world: World) -> "Tally":
        """What is used up before this plan: the nodes as they are, and past acts inside their hour and day."""
        acts = world.snapshot.acts
        hour = [a for a in acts if world.now_ms - a.at_ms < HOUR_MS]
        day = [a for a in acts if world.now_ms - a.at_ms < DAY_MS]
        namespaces: dict[str, int] = {}
        methods: dict[str, int] = {}
        for act in hour:
            methods[act.method] = methods.get(act.method, 0) + _boards(act.boards_milli)
            for name in {act.ref.namespace, act.given_to or act.ref.namespace}:
                namespaces[name] = namespaces.get(name, 0) + _boards(act.boards_milli)
        return cls(
            free=world.free,
            quota={},
            disruptions={},
            boards_hour=sum(_boards(a.boards_milli) for a in hour),
            boards_day=sum(_boards(a.boards_milli) for a in day),
            namespace_boards=namespaces,
            in_flight=sum(1 for a in acts if not a.verified),
            method_boards=methods,
            pods_hour=sum(max(0, a.pods) for a in hour),
        )

    def after(self, effect: Effect) -> "Tally":
        """The tally once the effect is accepted."""
        free = dict(self.free)
        for node in effect.surge_nodes:
            free[node] = subtract(free[node], {**effect.surge_demand, POD_SEATS: 1})
        disruptions = dict(self.disruptions)
        for name, count in effect.disruptions:
            key = (effect.namespace, name)
            disruptions[key] = disruptions.get(key, 0) + count
        spent = dict(self.namespace_boards)
        for name in {effect.namespace, effect.given_to or effect.namespace}:
            spent[name] = spent.get(name, 0) + effect.boards
        return Tally(
            free=free,
            quota={**self.quota, effect.namespace: add(self.quota.get(effect.namespace, {}), effect.quota)},
            disruptions=disruptions,
            boards_hour=self.boards_hour + effect.boards,
            boards_day=self.boards_day + effect.boards,
            namespace_boards=spent,
            in_flight=self.in_flight + effect.in_flight,
            method_boards={
                **self.method_boards,
                effect.method: self.method_boards.get(effect.method, 0) + effect.boards,
            },
            pods_hour=self.pods_hour + effect.pods,
            planned=self.planned + effect.in_flight,
        )


def _boards(milli: int) -> int:
    return max(0, -(-milli // 1000))
