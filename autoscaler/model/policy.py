"""The operator's policy: its sections together, checked against each other, and its forms as plain data and schema."""

import math
import re
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Meta

from autoscaler.model.duration import Duration, DurationError, parse_duration
from autoscaler.model.freeze import check_window
from autoscaler.model.policy_sections import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Budgets,
    Evidence,
    Freeze,
    Guards,
    Methods,
    Mode,
    Modes,
    Need,
    Resources,
    Section,
    Yield,
)
from autoscaler.model.selectors import parse_selector

__all__ = [
    "API_VERSION",
    "DAY_MS",
    "HOUR_MS",
    "MINUTE_MS",
    "Budgets",
    "Evidence",
    "Freeze",
    "Guards",
    "Methods",
    "Mode",
    "Modes",
    "Need",
    "Policy",
    "PolicyError",
    "Resources",
    "Section",
    "Yield",
    "policy_from_dict",
    "policy_schema",
    "policy_to_dict",
    "section_fields",
]

API_VERSION: Final = "gpu-autoscaler.io/v1alpha1"


class PolicyError(ValueError):
    """The policy is not acceptable; the message names the field and what is allowed."""


def _check_pattern(text: str) -> None:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"evidence.sourceJob is not a regular expression: {error}") from error


class Policy(Section, frozen=True):
    """The whole policy; immutable, valid by construction."""

    resources: Resources = Resources()
    evidence: Evidence = Evidence()
    need: Need = Need()
    methods: Methods = Methods()
    guards: Guards = Guards()
    budgets: Budgets = Budgets()
    freeze: Freeze = Freeze()
    yields: Yield = msgspec.field(default=Yield(), name="yield")
    modes: Modes = Modes()

    def __post_init__(self) -> None:
        _check_finite(self)
        parse_selector(self.resources.pod_selector)
        parse_selector(self.resources.namespace_selector)
        _check_pattern(self.evidence.source_job)
        for name in (*self.resources.boards, *self.resources.slices):
            if "/" not in name:
                raise ValueError(f"resources: {name!r} is not an extended resource (domain/name)")
        for window in self.freeze.windows:
            check_window(window)
        if self.evidence.window <= 0:
            raise ValueError("evidence.window must be over 0s")
        if self.need.history_window < self.evidence.window:
            raise ValueError("need.historyWindow must not be shorter than evidence.window")
        if self.need.confidence_unit <= 0:
            raise ValueError("need.confidenceUnit must be over 0s")
        if self.methods.idle_floor < self.evidence.window:
            raise ValueError("methods.idleFloor must not be shorter than evidence.window")
        if self.evidence.idle_ceiling > self.evidence.active_floor:
            raise ValueError("evidence.idleCeiling must not exceed evidence.activeFloor")


def _check_finite(section: Section) -> None:
    """NaN compares as neither over nor under a limit and infinity times zero is NaN: no number may be either."""
    for field in msgspec.structs.fields(section):
        value = getattr(section, field.name)
        if isinstance(value, Section):
            _check_finite(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{type(section).__name__.lower()}.{field.encode_name} must be a finite number")


def policy_from_dict(document: Any) -> Policy:
    """A policy from plain data (durations as text); raises `PolicyError` naming the field and what is allowed."""
    try:
        return msgspec.convert(document, type=Policy, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        raise PolicyError(_with_allowed(str(error))) from error


def _with_allowed(message: str) -> str:
    """Adds the allowed names to an unknown field's message."""
    if "unknown field" not in message:
        return message
    _, _, path = message.partition(" - at `$.")
    allowed = section_fields(tuple(path.rstrip("`").split(".")) if path else ())
    return f"{message} (allowed: {', '.join(allowed)})"


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """Plain data that `policy_from_dict` reads back to an equal policy."""
    plain = msgspec.to_builtins(policy, enc_hook=_encode_hook)
    return dict(plain)


def policy_schema() -> dict[str, Any]:
    """The JSON schema of the policy's sections, with defaults and the reasons for them."""
    return msgspec.json.schema(_written_form(Policy))


def section_fields(path: tuple[str, ...]) -> tuple[str, ...]:
    """The names allowed at a path such as ("evidence",); empty for a path that is no section."""
    kind: type[msgspec.Struct] = Policy
    for step in path:
        types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        nested = types.get(step)
        if not (isinstance(nested, type) and issubclass(nested, Section)):
            return ()
        kind = nested
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def _written_form(section: type[Section]) -> type[msgspec.Struct]:
    """The section with every `Duration` as text: msgspec cannot print defaults of custom types in a schema."""
    fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
    for field in msgspec.structs.fields(section):
        kind, default = field.type, field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        meta = next(iter(getattr(kind, "__metadata__", ())), Meta())
        listed = get_args(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
        if isinstance(kind, type) and issubclass(kind, Section):
            kind = _written_form(kind)
            default = kind()
        elif listed and isinstance(listed[0], type) and issubclass(listed[0], Section):
            kind = Annotated[tuple[_written_form(listed[0]), ...], meta]  # type: ignore[misc]  # made here
        elif _is_duration(kind):
            kind = Annotated[str, Meta(pattern=_DURATION_PATTERN, description=meta.description)]
            default = default if default is msgspec.NODEFAULT else str(default)
        fields.append(
            (field.encode_name, kind) if default is msgspec.NODEFAULT else (field.encode_name, kind, default)
        )
    namespace = {"__doc__": section.__doc__}
    return msgspec.defstruct(
        section.__name__, fields, namespace=namespace, forbid_unknown_fields=True, frozen=True
    )


def _is_duration(kind: Any) -> bool:
    return Duration in (kind, *get_args(kind)[:1])


_DURATION_PATTERN: Final = r"^(0|([0-9]+([.][0-9]+)?(ms|s|m|h|d))+)$"


def _decode_hook(kind: type, value: Any) -> Any:
    if kind is Duration:
        if isinstance(value, Duration):
            return value
        if not isinstance(value, str):
            raise ValueError(f"a duration is text such as 30s, 10m or 2d, got {value!r}")
        try:
            return parse_duration(value)
        except DurationError as error:
            raise ValueError(str(error)) from error
    raise NotImplementedError(kind.__name__)


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(type(value).__name__)
