"""A plan as a person approved it: the JSON or YAML that `plan -o` prints, read strictly."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.model.duration import format_duration
from autoscaler.model.plan import Plan
from autoscaler.observe.strict_yaml import YamlError, load_yaml
from autoscaler.service.faults import ConfigError, ServiceError

STDIN: Final = "-"
MAX_BYTES: Final = 64 * 1024**2
FRESH_MS: Final = 60 * 60 * 1000
"""An hour: what was approved was looked at on the same morning."""
AHEAD_MS: Final = 60 * 1000
"""Clocks of one cluster differ by less."""


def read_plan_file(path: Path) -> Plan:
    """The plan in a file, `-` for stdin; raises `ConfigError` with one sentence for anything else."""
    origin = "stdin" if str(path) == STDIN else str(path)
    try:
        document = _document(_text(path, origin))
        return msgspec.convert(document, type=Plan)
    except (YamlError, json.JSONDecodeError, msgspec.ValidationError, _RepeatedKeyError) as error:
        hint = "gpu-autoscaler plan -o yaml prints one"
        raise ConfigError(f"{origin}: not a plan: {' '.join(str(error).split())} ({hint})") from None
    except RecursionError:
        raise ConfigError(f"{origin}: not a plan: nested too deeply") from None


def refuse_stale(plan: Plan, now_ms: int) -> None:
    """Raises `ServiceError` for a plan that was not made lately by the API server's clock."""
    age_ms = now_ms - plan.taken_ms
    if age_ms > FRESH_MS:
        age = format_duration(age_ms // 60_000 * 60_000)
        raise ServiceError(
            f"the plan was made {age} ago, over {format_duration(FRESH_MS)}: make a new one, or say --stale-ok"
        )
    if age_ms < -AHEAD_MS:
        ahead = format_duration(-age_ms // 1000 * 1000)
        raise ServiceError(
            f"the plan was made {ahead} in the future by the API server's clock: make a new one, or say --stale-ok"
        )


class _RepeatedKeyError(ValueError):
    """A key is stated twice in one JSON object."""


def _text(path: Path, origin: str) -> str:
    try:
        if origin == "stdin":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{origin}: a plan of over {MAX_BYTES} bytes is not read")
        return data.decode()
    except OSError as error:
        raise ConfigError(f"{origin}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{origin}: not UTF-8: {error.reason}") from None


def _document(text: str) -> Any:
    """JSON by its own rules: YAML reads its pairs of surrogates as two characters, and takes a hundred times as long."""
    if text.lstrip().startswith("{"):
        return json.loads(text, object_pairs_hook=_stated_once)
    return load_yaml(text)


def _stated_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RepeatedKeyError("a key is repeated")
    return found
