"""Resource vectors: integer amounts by resource name (cpu in milli-cores, memory in bytes, devices in units)."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number as the API has them: what is read from a file must fit, so that no sum or ratio overflows."""
Vector = dict[str, Int64]


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Vector:
    """Component-wise sum."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> Vector:
    """Component-wise difference; components may go below zero."""
    rest = dict(left)
    for name, amount in right.items():
        rest[name] = rest.get(name, 0) - amount
    return rest


def maximum(left: Mapping[str, int], right: Mapping[str, int]) -> Vector:
    """Component-wise maximum."""
    top = dict(left)
    for name, amount in right.items():
        top[name] = max(top.get(name, 0), amount)
    return top


def total(vectors: Iterable[Mapping[str, int]]) -> Vector:
    """Component-wise sum of any number of vectors."""
    result: Vector = {}
    for vector in vectors:
        for name, amount in vector.items():
            result[name] = result.get(name, 0) + amount
    return result


def fits(demand: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Whether every component that is asked for is free; asking for nothing always fits."""
    return all(amount <= free.get(name, 0) for name, amount in demand.items() if amount > 0)


def scarcest(demand: Mapping[str, int], free: Mapping[str, int]) -> str | None:
    """The component with the largest shortfall, or None where the demand fits; ties by name."""
    short = {n: a - free.get(n, 0) for n, a in demand.items() if a > 0 and a > free.get(n, 0)}
    return min(short, key=lambda name: (-short[name], name)) if short else None
