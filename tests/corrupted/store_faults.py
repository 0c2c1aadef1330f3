"""A store that answers with nothing, with warnings or not at all, or by another clock."""

from dataclasses import replace
from random import Random
from zlib import crc32

from corrupted.case import Case, forgotten, noted
from corrupted.exporter import ENERGY, ENGINE, POWER, USED, UTIL
from corrupted.worlds import MINUTE_MS


def skew_clocks(case: Case, draw: Random) -> Case:
    """The store's clock is not the API server's."""
    skew_ms = draw.choice((-10, 10)) * MINUTE_MS if draw.random() < 0.7 else draw.choice((-20_000, 20_000))
    return replace(case, faults=replace(case.faults, skew_ms=skew_ms))


def empty_answers(case: Case, draw: Random) -> Case:
    """Queries are answered by an empty vector: all of them, those of a metric, those of a function, or some."""
    kind = draw.choice(("all", "metric", "function", "some"))
    metric = draw.choice((ENGINE, UTIL, POWER, ENERGY, USED))
    function = draw.choice(("count_over_time", "min_over_time", "sum_over_time", "timestamp", "by (job)"))
    salt = draw.randrange(2**30)
    asked = {
        "all": lambda _query: True,
        "metric": lambda query: metric in query,
        "function": lambda query: function in query,
        "some": lambda query: crc32(f"{salt}{query}".encode()) % 100 < 30,
    }[kind]
    found = replace(case, faults=replace(case.faults, empty=(*case.faults.empty, asked)))
    found = noted(found, f"nothing for {kind} ({metric}, {function})")
    if kind != "all":
        return found
    return forgotten(found, [unit.name for unit in case.world.units], servers=True)


def warnings(case: Case, draw: Random) -> Case:
    """The store says that its answer may not be whole."""
    text = draw.choice(
        ("PromQL warning: results may be incomplete", "partial response: store gateway is down")
    )
    found = replace(case, faults=replace(case.faults, warning=text))
    return forgotten(found, [unit.name for unit in case.world.units], servers=True)


def errors(case: Case, draw: Random) -> Case:
    """Some queries fail."""
    salt = draw.randrange(2**30)
    refused = replace(case.faults, refused=lambda query: crc32(f"{salt}{query}".encode()) % 100 < 10)
    return replace(case, faults=refused)
