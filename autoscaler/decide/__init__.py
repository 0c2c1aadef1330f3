"""The core: `plan(snapshot, policy, now_ms)` and nothing else.

A total function of its arguments: it awaits nothing, reads no clock, writes no log and draws no random number, so
the same snapshot and policy give the same plan, byte for byte.
"""

from autoscaler.decide.planner import plan

__all__ = ["plan"]
