import gc
import weakref

import pytest

from autoscaler.service.garbage import GarbagePolicy


class Knot:
    def __init__(self) -> None:
        self.itself = self


def test_nothing_is_collected_while_a_cycle_thinks() -> None:
    policy = GarbagePolicy()
    with policy.in_force(), policy.around_cycle():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_survivors_are_out_of_the_collectors_sight_until_the_service_ends() -> None:
    policy = GarbagePolicy()
    with policy.in_force():
        with policy.around_cycle():
            pass
        assert gc.get_freeze_count() > 0

    assert gc.get_freeze_count() == 0


def test_a_cycle_that_fails_gives_the_collector_back() -> None:
    policy = GarbagePolicy()
    with policy.in_force(), pytest.raises(ValueError, match="a defect"), policy.around_cycle():
        raise ValueError("a defect")

    assert gc.isenabled()


def test_knots_are_untied_now_and_then() -> None:
    policy = GarbagePolicy(full_every=2)
    with policy.in_force():
        with policy.around_cycle():
            watched = weakref.ref(Knot())
        kept = watched() is not None
        with policy.around_cycle():
            pass

        assert kept
        assert watched() is None
