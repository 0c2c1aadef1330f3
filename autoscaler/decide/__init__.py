"""The core: `plan(snapshot, policy, now_ms)` and what is said beside a plan.

A total function of its arguments: it awaits nothing, reads no clock, writes no log and draws no random number, so
the same snapshot and policy give the same plan, byte for byte.
"""

from autoscaler.decide.explanation import explain_fully
from autoscaler.decide.planner import plan, plan_and_watch

__all__ = ["explain_fully", "plan", "plan_and_watch"]
