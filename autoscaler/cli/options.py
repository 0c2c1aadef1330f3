"""What several commands take: options, settings and policy, and the name of a workload."""

import asyncio
import getpass
import os
import platform
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from autoscaler.model.policy import Policy
from autoscaler.service.faults import ConfigError
from autoscaler.service.logs import configure_logs
from autoscaler.service.policy_file import load_policy
from autoscaler.service.policy_variables import policy_overrides
from autoscaler.service.settings import Settings, load_settings
from autoscaler.ui.views import Form

T = TypeVar("T")
PolicyOption = Annotated[
    Path | None, Parameter(name="--policy", help="policy file; wins over AUTOSCALER_POLICY_FILE")
]
FormOption = Annotated[Form, Parameter(name=["--output", "-o"], help="table, wide, json or yaml")]


def settings_of(policy_file: Path | None) -> Settings:
    """The environment's settings, with the policy file of the command line."""
    settings = load_settings(os.environ)
    return settings if policy_file is None else settings.model_copy(update={"policy_file": policy_file})


def policy_of(settings: Settings, environ: Mapping[str, str]) -> Policy:
    """The policy in force for this command."""
    return load_policy(settings.policy_file, policy_overrides(environ)).policy


def namespace_and_name(command: str, workload: str) -> tuple[str, str]:
    """The parts of NAMESPACE/NAME; raises `ConfigError` for anything else."""
    namespace, separator, name = workload.partition("/")
    if not separator or not namespace or not name or "/" in name:
        raise ConfigError(f"{command} takes NAMESPACE/NAME, got {workload!r}")
    return namespace, name


def run_once(settings: Settings, work: Coroutine[Any, Any, T]) -> T:
    """Runs what a one-shot command does; it says what went wrong itself, so the libraries' retries are noise."""
    configure_logs(level="debug" if settings.log_level == "debug" else "error", form="console")
    return asyncio.run(work)


def person() -> str:
    """Who gives the command, for the ledger and the pause: the account and the machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = f"uid-{os.getuid()}"
    return f"{user}@{platform.node() or 'unknown'}"
