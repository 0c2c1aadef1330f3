"""Every policy field as an environment variable: ``AUTOSCALER_<SECTION>_<FIELD>``.

The table is read off the policy's types, so a field added there is settable here on the same day.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_args, get_origin

import msgspec

from autoscaler.model.duration import Duration, DurationError, parse_duration
from autoscaler.model.policy import Policy, Section
from autoscaler.service.faults import ConfigError

PREFIX: Final = "AUTOSCALER_"
SHORT_NAMES: Final = {
    "AUTOSCALER_MODE": "AUTOSCALER_MODES_DEFAULT",
    "AUTOSCALER_POD_SELECTOR": "AUTOSCALER_RESOURCES_POD_SELECTOR",
    "AUTOSCALER_NAMESPACES": "AUTOSCALER_RESOURCES_NAMESPACES",
    "AUTOSCALER_NAMESPACE_SELECTOR": "AUTOSCALER_RESOURCES_NAMESPACE_SELECTOR",
}
"""What people set most often."""


@dataclass(frozen=True)
class PolicyVariable:
    """One variable and the field it overrides; ``kind`` is the field's type, limits included."""

    name: str
    section: str
    field: str
    kind: Any


def policy_variables() -> dict[str, PolicyVariable]:
    """All of them by name, the short names too."""
    found: dict[str, PolicyVariable] = {}
    for section in msgspec.structs.fields(Policy):
        if not (isinstance(section.type, type) and issubclass(section.type, Section)):
            continue
        for field in msgspec.structs.fields(section.type):
            name = f"{PREFIX}{section.encode_name}_{field.name}".upper()
            found[name] = PolicyVariable(name, section.encode_name, field.encode_name, field.type)
    for short, long in SHORT_NAMES.items():
        found[short] = replace(found[long], name=short)
    return found


def policy_overrides(environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The sections and fields that the environment sets, as plain data to lay over a policy file."""
    overrides: dict[str, dict[str, Any]] = {}
    for name, variable in sorted(policy_variables().items()):
        if name not in environ:
            continue
        value = _read(variable, environ[name])
        section = overrides.setdefault(variable.section, {})
        if section.get(variable.field, value) != value:
            raise ConfigError(f"{name} and its other name disagree: set one of them")
        section[variable.field] = value
    return overrides


def overlay(document: Mapping[str, Any], overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The document with the overrides laid over it, field by field; a section that is no mapping stays as it is."""
    merged = dict(document)
    for section, fields in overrides.items():
        present = merged.get(section, {})
        if isinstance(present, Mapping):
            merged[section] = {**present, **fields}
    return merged


def _read(variable: PolicyVariable, text: str) -> Any:
    """The text as the field's type; raises `ConfigError` naming the variable and what is allowed."""
    value: Any = text.strip()
    try:
        if value.startswith(("[", "{")):
            value = msgspec.json.decode(value)
        elif _is_mapping(variable.kind):
            value = dict(_pairs(value))
        elif _is_list(variable.kind):
            value = [item.strip() for item in value.split(",") if item.strip()]
        return msgspec.convert(value, type=variable.kind, strict=False, dec_hook=_decode_duration)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"{variable.name}={text[:64]!r} is not acceptable: {_allowed(variable, error)}"
        ) from None


def _allowed(variable: PolicyVariable, error: Exception) -> str:
    options = list(_options(variable.kind))
    if (
        options
        and not _is_list(variable.kind)
        and not (_is_mapping(variable.kind) and "enum" not in str(error))
    ):
        return f"allowed: {', '.join(options)}"
    return str(error).replace(", got `str`", "").replace("Expected", "expected")


def _options(kind: Any) -> Iterator[str]:
    """The texts of a Literal, however deep it sits."""
    for argument in get_args(kind):
        if isinstance(argument, str):
            yield argument
        else:
            yield from _options(argument)


def _is_list(kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is tuple:
        return True
    return any(get_origin(argument) is tuple for argument in get_args(kind))


def _is_mapping(kind: Any) -> bool:
    return dict in {get_origin(kind), *(get_origin(argument) for argument in get_args(kind))}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """``name=value`` pairs, separated by commas; one without a value is told as a bad value."""
    for pair in filter(None, (item.strip() for item in text.split(","))):
        name, _, value = (part.strip() for part in pair.partition("="))
        yield name, value


def _decode_duration(kind: type, value: Any) -> Any:
    if kind is not Duration:
        raise NotImplementedError(kind.__name__)
    try:
        return parse_duration(str(value))
    except DurationError as error:
        raise ValueError(str(error)) from error
