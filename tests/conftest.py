"""Hypothesis profiles: `fast` repeats the same examples in every run, HYPOTHESIS_PROFILE=slow searches for new ones."""

import os

import pytest
from hypothesis import HealthCheck, settings

_CALM = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")

settings.register_profile(
    "fast", max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=_CALM
)
settings.register_profile("slow", max_examples=1000, deadline=None, suppress_health_check=_CALM)
settings.load_profile(_PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A thousand examples take longer than the time limit of an ordinary test."""
    if _PROFILE == "slow":
        for item in items:
            item.add_marker(pytest.mark.timeout(900))
