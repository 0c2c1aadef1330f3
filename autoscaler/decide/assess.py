"""What a workload is and how it uses what it holds: role, verdict and need, each with its stated cause."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.decide.evidence import observe_unit
from autoscaler.decide.need import estimate_need, largest_need
from autoscaler.decide.remembered import NOTHING_REMEMBERED, Remembered, remembered
from autoscaler.decide.world import Case, Unit, World
from autoscaler.model.evidence import ACTIVITY_SCALE, Absent, BoardUse, Measured, Observation
from autoscaler.model.plan import Need, Role, Verdict
from autoscaler.model.policy import Evidence

_TRAINING_KINDS = frozenset(
    {
        "Job",
        "CronJob",
        "PyTorchJob",
        "TrainJob",
        "MPIJob",
        "JobSet",
        "TFJob",
        "RayJob",
        "PaddleJob",
        "XGBoostJob",
    }
)
_SERVING_KINDS = frozenset({"InferenceService", "LeaderWorkerSet", "RayService", "LLMInferenceService"})
_INTERACTIVE_KINDS = frozenset({"Notebook", "RayCluster"})
_TRAINING_IMAGES = (
    "train",
    "trainer",
    "training",
    "finetune",
    "finetuning",
    "fine-tune",
    "fine-tuning",
    "deepspeed",
    "torchrun",
)
_SERVING_IMAGES = (
    "vllm",
    "triton",
    "tritonserver",
    "torchserve",
    "tgi",
    "sglang",
    "inference",
    "serving",
    "kserve",
)
_INTERACTIVE_IMAGES = (
    "jupyter",
    "jupyterlab",
    "jupyterhub",
    "notebook",
    "notebooks",
    "code-server",
    "rstudio",
)
_JUPYTER_PORT = 8888
_RENDEZVOUS_PORT = 29500
"""PyTorch's default MASTER_PORT, where the ranks of one run meet."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The judgement of one workload; `measured` is empty unless every unit is measured."""

    verdict: Verdict
    role: Role
    role_cause: str
    observations: tuple[Observation, ...]
    measured: tuple[Measured, ...] = ()
    use_ratio: float | None = None
    need: Need | None = None
    idle_ms: int = 0
    past: Remembered = NOTHING_REMEMBERED

    @property
    def doubt(self) -> Observation | None:
        """The first observation that is not measured; None where all are."""
        return next((o for o in self.observations if not isinstance(o, Measured)), None)


def assess(world: World, case: Case) -> Assessment:
    """The assessment; one unit that is not measured makes the whole workload unknown."""
    role, cause = role_of(case)
    observations = tuple(
        observe_unit(world, unit, held=unit.shape.demand.get(case.resource, 0)) for unit in case.units
    )
    measured = tuple(o for o in observations if isinstance(o, Measured))
    if not observations or len(measured) != len(observations):
        return Assessment(_verdict_by_servers(world, case, observations), role, cause, observations)
    runs = case.workload.completed_runs if case.workload.ref.kind == "CronJob" else None
    past = past_of(world, case)
    need = largest_need([estimate_need(unit, world.policy, runs=runs, past=past) for unit in measured])
    verdict, ratio = _verdict_by_demand(world, case.units, measured)
    return Assessment(
        verdict=verdict,
        role=role,
        role_cause=cause,
        observations=observations,
        measured=measured,
        use_ratio=round(ratio, 4),
        need=need,
        idle_ms=min(_idle_ms(world, unit) for unit in measured),
        past=past,
    )


def past_of(world: World, case: Case) -> Remembered:
    """What is remembered of the workload, by the containers that its units have now."""
    containers = {container.name for unit in case.units for container in unit.shape.containers}
    histories = world.histories.get(case.workload.ref, ())
    return remembered(histories, containers=containers, held=case.held)


def assess_alone(world: World, whole: Assessment, position: int, unit: Unit) -> Assessment:
    """The assessment of one unit by itself, the one at the position, whatever is known of its peers; the role is the workload's."""
    observation = whole.observations[position]
    if not isinstance(observation, Measured):
        return Assessment("unknown", whole.role, whole.role_cause, (observation,))
    verdict, ratio = _verdict_by_demand(world, (unit,), (observation,))
    return Assessment(
        verdict=verdict,
        role=whole.role,
        role_cause=whole.role_cause,
        observations=(observation,),
        measured=(observation,),
        use_ratio=round(ratio, 4),
        idle_ms=_idle_ms(world, observation),
    )


def _verdict_by_demand(
    world: World, units: Iterable[Unit], measured: tuple[Measured, ...]
) -> tuple[Verdict, float]:
    """As the boards say, but busy where an inference server has more demand than it serves, however little they do."""
    verdict, ratio = _verdict(measured, world.policy.evidence)
    wanting = any(use.wants_all for unit in units for use in world.serving.get(unit.index, ()))
    return ("busy" if wanting and verdict == "under-used" else verdict), ratio


def _verdict_by_servers(world: World, case: Case, observations: tuple[Observation, ...]) -> Verdict:
    """What inference servers alone tell where the accelerators' own figures are absent; nothing is ever done on it."""
    told = world.snapshot.telemetry
    if told.fault or told.warnings or not all(isinstance(o, Absent | Measured) for o in observations):
        return "unknown"
    silent = [unit for unit, o in zip(case.units, observations, strict=True) if isinstance(o, Absent)]
    uses = [world.serving.get(unit.index, ()) for unit in silent]
    if any(use.is_active for found in uses for use in found):
        return "busy"
    alone = len(silent) == len(observations) > 0
    return "idle" if alone and all(f and all(u.proves_idle for u in f) for f in uses) else "unknown"


def _use(unit: Measured) -> float:
    return sum(board.mean for board in unit.boards) / (len(unit.boards) * ACTIVITY_SCALE)


def _share_use(board: BoardUse) -> int:
    """Use of what is held: a share of a board is used up by its part of the board's time."""
    return min(ACTIVITY_SCALE, board.mean * board.shares)


def _verdict(units: tuple[Measured, ...], evidence: Evidence) -> tuple[Verdict, float]:
    boards = [board for unit in units for board in unit.boards]
    ratio = sum(_share_use(board) for board in boards) / (len(boards) * ACTIVITY_SCALE)
    sure = [unit for unit in units if not any(board.clamped for board in unit.boards)]
    if max((_use(unit) for unit in sure), default=0.0) >= evidence.saturation:
        return "saturated", ratio
    if all(board.peak <= evidence.idle_ceiling * ACTIVITY_SCALE for board in boards):
        return "idle", ratio
    return ("busy" if ratio >= evidence.low_watermark else "under-used"), ratio


def _idle_ms(world: World, unit: Measured) -> int:
    """For how long the unit is proven idle: its whole history if that shows no activity, else the window."""
    ceiling = world.policy.evidence.idle_ceiling * ACTIVITY_SCALE
    if any(board.peak > ceiling for board in unit.boards):
        return 0
    window_ms = min(world.snapshot.telemetry.window_ms, unit.history_ms)
    return unit.history_ms if all(board.history_peak <= ceiling for board in unit.boards) else window_ms


def role_of(case: Case) -> tuple[Role, str]:
    """Training, serving, interactive or unstated, with the cause; the owner's statement comes first."""
    stated = case.stated.role
    if stated is not None:
        return stated.role, stated.cause
    kind = case.workload.ref.kind
    if kind in _TRAINING_KINDS:
        return "training", f"kind {kind}"
    if kind in _SERVING_KINDS:
        return "serving", f"kind {kind}"
    if kind in _INTERACTIVE_KINDS:
        return "interactive", f"kind {kind}"
    return _role_by_container(case)


def _role_by_container(case: Case) -> tuple[Role, str]:
    containers = [c for c in (case.shape.containers if case.shape else ()) if c.role != "init"]
    for container in containers:
        if _JUPYTER_PORT in container.ports or _image_names(container.image, _INTERACTIVE_IMAGES):
            return "interactive", f"container {container.name}: notebook port or image"
        if container.tty:
            return "interactive", f"container {container.name} has a terminal"
    for container in containers:
        if _RENDEZVOUS_PORT in container.ports:
            return "training", f"container {container.name} has the rendezvous port {_RENDEZVOUS_PORT}"
        if _image_names(container.image, _TRAINING_IMAGES):
            return "training", f"image of container {container.name}"
        if _image_names(container.image, _SERVING_IMAGES):
            return "serving", f"image of container {container.name}"
    for container in containers:
        if container.ports:
            return "serving", f"container {container.name} listens on port {container.ports[0]}"
    return "unstated", "nothing tells"


def _image_names(image: str, words: tuple[str, ...]) -> bool:
    """Whether the last part of an image's path, tag included, has one of the words whole: digitgif is no tgi."""
    parts = f"-{'-'.join(re.split('[-_.:@]+', image.lower().rpartition('/')[2]))}-"
    return any(f"-{word}-" in parts for word in words)
