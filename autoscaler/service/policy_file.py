"""The policy file: YAML with ``apiVersion``, ``kind: Policy`` and the policy's sections; reloaded while we run.

Precedence is environment over file over defaults. A file that became bad is refused and the policy in force stays,
because a typing error at night must not change what may be taken from whom.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.model.policy import API_VERSION, Policy, PolicyError, policy_from_dict, section_fields
from autoscaler.observe.strict_yaml import YamlError, load_yaml
from autoscaler.service.faults import ConfigError
from autoscaler.service.policy_variables import overlay

KIND: Final = "Policy"
MAX_BYTES: Final = 1024 * 1024
"""ConfigMaps hold no more than this."""


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy in force and where it came from; ``digest`` names its content in logs and metrics."""

    policy: Policy
    digest: str
    origin: str


def parse_policy(text: str, *, origin: str, overrides: Mapping[str, Mapping[str, Any]]) -> LoadedPolicy:
    """The policy in a file's text; raises `ConfigError` naming the file, the field and what is allowed."""
    try:
        document = load_yaml(text)
    except YamlError as error:
        raise ConfigError(f"{origin}: not YAML: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(
            f"{origin}: expected a mapping with apiVersion: {API_VERSION}, kind: {KIND} and sections"
        )
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != expected:
            raise ConfigError(f"{origin}: {key} must be {expected!r}, got {document.get(key)!r}")
    sections = {key: value for key, value in document.items() if key not in {"apiVersion", "kind"}}
    return _resolve(sections, origin=origin, overrides=overrides)


def default_policy(overrides: Mapping[str, Mapping[str, Any]]) -> LoadedPolicy:
    """The defaults with the environment laid over them."""
    return _resolve({}, origin="defaults", overrides=overrides)


def load_policy(path: Path | None, overrides: Mapping[str, Mapping[str, Any]]) -> LoadedPolicy:
    """The policy to start with; raises `ConfigError` when the file cannot be read or is bad."""
    if path is None:
        return default_policy(overrides)
    return parse_policy(_read(path), origin=str(path), overrides=overrides)


class PolicySource:
    """The policy in force; `refresh` looks at the file again."""

    def __init__(self, path: Path | None, overrides: Mapping[str, Mapping[str, Any]]) -> None:
        self._path = path
        self._overrides = overrides
        self._seen = ""
        self.fault = ""
        """Why the newest file was refused; empty while the policy in force is the file's."""
        self.loaded = load_policy(path, overrides)

    def refresh(self, report: Callable[[str, str], None]) -> LoadedPolicy:
        """The policy to use now; blocking, so call it off the loop. ``report(event, text)`` is told of each change once."""
        if self._path is None:
            return self.loaded
        try:
            text = _read(self._path)
            if (seen := _digest(text.encode())) == self._seen:
                return self.loaded
            self._seen = seen
            loaded = parse_policy(text, origin=str(self._path), overrides=self._overrides)
            self._refuse_other_resources(loaded)
        except ConfigError as error:
            if str(error) != self.fault:
                self.fault = str(error)
                report("policy_refused", self.fault)
            return self.loaded
        if self.fault or loaded.digest != self.loaded.digest:
            report("policy_loaded", loaded.digest)
        self.fault, self.loaded = "", loaded
        return loaded

    def _refuse_other_resources(self, loaded: LoadedPolicy) -> None:
        """The stores keep pods by the accelerators known at the start."""
        now, new = self.loaded.policy.resources, loaded.policy.resources
        if (now.boards, now.slices) != (new.boards, new.slices):
            raise ConfigError(f"{self._path}: other resources.boards or resources.slices need a restart")


def _resolve(
    sections: Mapping[str, Any], *, origin: str, overrides: Mapping[str, Mapping[str, Any]]
) -> LoadedPolicy:
    for section, value in sections.items():
        if value is None and section in section_fields(()):
            raise ConfigError(f"{origin}: section {section} is empty; remove it or fill it")
    named = f"{origin} with the environment's overrides" if overrides else origin
    try:
        policy = policy_from_dict(overlay(sections, overrides))
    except PolicyError as error:
        raise ConfigError(f"{named}: {error}") from None
    except RecursionError:  # anchors can nest a file more deeply than its text
        raise ConfigError(f"{named}: nested too deeply") from None
    text = msgspec.json.encode(policy, enc_hook=str, order="deterministic")
    return LoadedPolicy(policy, _digest(text), origin)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{path}: a policy file of over {MAX_BYTES} bytes is not read")
        return data.decode()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: {error.reason}") from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
