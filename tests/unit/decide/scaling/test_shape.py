from autoscaler.decide.scaling.shape import Peak, Shape

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NINE = 9 * HOUR


def lived(days: int, *, peak_days: frozenset[int] | None = None, ask_from: int | None = None) -> Shape:
    """A load of 2, and of 10 from nine to ten on the days of the peak; from a day on it is asked before nine."""
    shape = Shape()
    for day in range(days):
        for minute in range(0, 24 * 60, 10):
            at = day * DAY + minute * MINUTE
            if ask_from is not None and day >= ask_from:
                shape.peak(at + 2 * MINUTE, 3.0)
            peaks = peak_days is None or day in peak_days
            shape.observe(at, 10.0 if peaks and NINE <= at % DAY < NINE + HOUR else 2.0)
    return shape


def test_a_peak_of_every_day_is_known_ahead() -> None:
    assert lived(3).peak(3 * DAY + NINE, 3.0) == Peak(10.0, 0, 0)


def test_the_floor_is_what_every_day_had() -> None:
    assert lived(3).floor(3 * DAY + NINE) == 10.0
    assert lived(3).floor(3 * DAY) == 2.0
    assert lived(2).floor(2 * DAY) == 0.0


def test_two_days_are_no_shape() -> None:
    assert lived(2).peak(2 * DAY + NINE, 3.0) is None


def test_a_peak_that_one_day_lacked_is_not_known() -> None:
    assert lived(5, peak_days=frozenset({0, 1, 3, 4})).peak(5 * DAY + NINE, 3.0) is None


def test_a_weekly_peak_is_known_after_three_weeks() -> None:
    mondays = frozenset({0, 7, 14})

    assert lived(21, peak_days=mondays).peak(21 * DAY + NINE, 3.0) == Peak(10.0, 0, 0)
    assert lived(14, peak_days=mondays).peak(14 * DAY + NINE, 3.0) is None


def test_it_never_lowers_a_need_and_a_peak_within_one_replica_is_none() -> None:
    assert lived(4).peak(4 * DAY + NINE, 9.0) is None
    assert lived(4).peak(4 * DAY + NINE, 20.0) is None


def test_other_hours_are_not_raised() -> None:
    assert lived(4).peak(4 * DAY + 12 * HOUR, 1.5) is None


def test_peaks_that_came_are_counted() -> None:
    peak = lived(6, ask_from=3).peak(6 * DAY + NINE, 3.0)

    assert peak is not None
    assert (peak.came, peak.foretold) == (18, 18)


def test_peaks_that_did_not_come_end_the_trust() -> None:
    shape = lived(6)
    answers = []
    for minute in range(0, 24 * 60, 10):
        at = 6 * DAY + minute * MINUTE
        answers.append(shape.peak(at, 3.0) is not None)
        shape.observe(at, 2.0)

    # of six foretold three were followed: when the fourth was, two had failed and none had come
    assert sum(answers) == 3
    assert shape.floor(7 * DAY + NINE) == 0.0


def test_times_without_samples_prove_nothing() -> None:
    shape = lived(6)
    for minute in range(0, 60, 10):
        assert shape.peak(6 * DAY + NINE + minute * MINUTE, 3.0) is not None
    shape.observe(6 * DAY + 12 * HOUR, 2.0)

    peak = shape.peak(7 * DAY + NINE, 3.0)
    assert peak == Peak(10.0, 0, 0)


def test_three_weeks_are_kept_and_no_more() -> None:
    assert len(lived(30)._highest) == 3 * 7 * 144
