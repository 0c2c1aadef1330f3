"""The synthetic cluster as one snapshot, read by the service's own one-shot reading over real sockets."""

import asyncio

import msgspec

from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.once import read_live
from autoscaler.service.policy_file import default_policy
from autoscaler.service.policy_variables import policy_overrides
from autoscaler.service.settings import load_settings
from benchmarks.live_service import WINDOWS, Peers, peers


def policy() -> Policy:
    """The shipped policy with the windows of the benchmarks."""
    return default_policy(policy_overrides(WINDOWS)).policy


def snapshot(pods: int) -> Snapshot:
    """A cluster of so many pods."""
    with peers(pods, **WINDOWS) as against:
        return snapshot_of(against)


def snapshot_of(against: Peers) -> Snapshot:
    """What stands behind these servers."""
    environ = dict(against.environ)
    read = asyncio.run(read_live(load_settings(environ), environ, policy(), show=lambda _: None))
    # A machine busy with other things reads so slowly that all evidence is stale: deciding would have little to do.
    return msgspec.structs.replace(read, telemetry=msgspec.structs.replace(read.telemetry, read_ms=0))
