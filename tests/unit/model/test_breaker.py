from autoscaler.model.breaker import FleetHealth


def test_coverage_is_measured_of_all_units_and_zero_of_none() -> None:
    assert (FleetHealth(units=4, measured=3).coverage, FleetHealth().coverage) == (0.75, 0.0)


def test_attribution_is_not_known_where_no_board_has_samples() -> None:
    assert FleetHealth(units=9, seen=3, unattributed=1).attribution == 0.75
    assert FleetHealth(units=9).attribution is None
