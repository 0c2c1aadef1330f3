"""Faults that end a command, each with one clear sentence and the exit code that goes with it."""

from autoscaler.service import exit_codes


class ServiceError(Exception):
    """Expected trouble: shown as one sentence, never as a traceback."""

    exit_code = exit_codes.FAILED


class ConfigError(ServiceError):
    """A setting, a policy or an argument is not acceptable; the message names it and what is allowed."""

    exit_code = exit_codes.USAGE


class WorkloadNotFoundError(ServiceError):
    """The named workload is not in the plan."""

    exit_code = exit_codes.NOT_FOUND
