"""What holds for one workload, and who says so: the policy's modes and the owner's statements, wherever they stand."""

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.decide.actions import mode_for
from autoscaler.decide.assess import Assessment
from autoscaler.decide.marks import ALLOWED_GPUS, MIN_GPUS, MIN_REPLICAS, ROLE
from autoscaler.decide.proposal import Judged
from autoscaler.decide.statements import Carrier, Statement
from autoscaler.decide.world import Case, World
from autoscaler.model.breaker import FleetHealth
from autoscaler.model.plan import Method

_LONGEST: Final = 40
"""Characters of a text that an owner may have written."""


def terms_of(world: World, case: Case, assessment: Assessment) -> tuple[str, ...]:
    """One line for each mode with the kinds of action that have it, and one for each thing that its owner states."""
    carriers = tuple(world.carriers(case.workload, case.units))
    return (*_modes(world, Judged(case, assessment, FleetHealth())), *_stated(case, carriers))


def _modes(world: World, judged: Judged) -> Iterator[str]:
    modes, stated = world.policy.modes, judged.case.stated.mode
    methods: dict[str, list[Method]] = {}
    for method in modes.by_method:
        by_policy = modes.of(method, judged.case.workload.ref.namespace)
        said = [f"{by_policy} by policy"]
        said += [f"at most {stated.mode} by {stated.cause}"] if stated else []
        said += ["at most recommend, since it is interactive"] * (judged.assessment.role == "interactive")
        mode = mode_for(world.policy, judged, method)
        methods.setdefault(f"{mode} ({'; '.join(said)})", []).append(method)
    for mode_line, names in methods.items():
        yield f"mode of {', '.join(names)}: {mode_line}"


def _stated(case: Case, carriers: tuple[Carrier, ...]) -> Iterator[str]:
    numbers: Mapping[str, Statement | None] = {
        ALLOWED_GPUS: case.stated.allowed,
        MIN_GPUS: case.stated.least,
        MIN_REPLICAS: case.stated.floor,
    }
    for key, statement in numbers.items():
        if statement is not None:
            holds = statement.fault or ", ".join(map(str, statement.values))
            yield f"{key}: {holds} ({_places(key, carriers)})"
    if case.stated.role is not None:
        yield f"{ROLE}: {case.stated.role.role} ({_places(ROLE, carriers)})"


def _places(key: str, carriers: tuple[Carrier, ...]) -> str:
    """Every text under a key with its place, each once; the strictest of them holds."""
    found = (
        f"{texts[key][:_LONGEST]!r}{place or ' on the workload'}" for place, texts in carriers if key in texts
    )
    return ", ".join(dict.fromkeys(found))
