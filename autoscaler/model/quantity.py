"""Kubernetes quantities as exact integers.

The grammar is that of k8s.io/apimachinery `resource.Quantity`: a decimal number and a binary (Ki..Ei),
decimal (n, u, m, k..E) or exponent suffix.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_PATTERN: Final = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?", re.ASCII
)
_SCALE: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_MAX_EXPONENT: Final = 30
_MAX_TEXT: Final = 64
_MAX_AMOUNT: Final = 2**63 - 1


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity; raises `QuantityError` naming the text."""
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if match is None:
        raise QuantityError(f"not a quantity: {text[:_MAX_TEXT]!r}")
    number, suffix = match.groups(default="")
    if suffix[:1] in {"e", "E"} and len(suffix) > 1 and suffix not in _SCALE:
        exponent = int(suffix[1:])
        if abs(exponent) > _MAX_EXPONENT:
            raise QuantityError(f"exponent out of range: {text!r}")
        return Fraction(number) * Fraction(10) ** exponent
    return Fraction(number) * _SCALE[suffix]


@lru_cache(maxsize=4096)  # a cluster writes few distinct quantities, many times each
def resource_amount(resource: str, text: str) -> int:
    """The amount of a resource in our units: milli-cores for `cpu`, whole units (bytes, boards) for all else.

    Rounded up as the scheduler does and capped at 2^63 - 1 as the API server does; raises `QuantityError` also for
    negative amounts.
    """
    value = parse_quantity(text)
    if value < 0:
        raise QuantityError(f"negative amount of {resource}: {text!r}")
    scaled = value * 1000 if resource == "cpu" else value
    return min(-(-scaled.numerator // scaled.denominator), _MAX_AMOUNT)
