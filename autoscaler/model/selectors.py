"""Label selectors, as objects state them and as people write them ("gpu=true,team!=lab,!legacy")."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

_TERM: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<gone>[\w./-]+)|(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*))?)\s*"
)


class LabelRequirement(msgspec.Struct, frozen=True):
    """One `matchExpressions` entry of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True):
    """A label selector; an empty one selects everything in its namespace (policy/v1)."""

    match_labels: dict[str, str] = {}
    expressions: tuple[LabelRequirement, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels match; an operator that is not known matches, the careful side for a budget."""
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(meets(labels, r.key, r.operator, r.values) is not False for r in self.expressions)


def meets(labels: Mapping[str, str], key: str, operator: str, values: tuple[str, ...]) -> bool | None:
    """Whether labels meet a requirement; None for an operator that only some selectors have, or none."""
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return None


def parse_selector(text: str) -> LabelSelector:
    """The selector that an equality-based text states; raises `ValueError` naming the term that is not readable."""
    requirements: list[LabelRequirement] = []
    for term in text.split(",") if text.strip() else ():
        match = _TERM.fullmatch(term)
        if match is None:
            raise ValueError(
                f"not a label selector term (use key=value, key!=value, key or !key): {term[:64]!r}"
            )
        if match["absent"]:
            requirements.append(LabelRequirement(match["gone"], "DoesNotExist"))
        elif match["op"] is None:
            requirements.append(LabelRequirement(match["key"], "Exists"))
        else:
            operator = "NotIn" if match["op"] == "!=" else "In"
            requirements.append(LabelRequirement(match["key"], operator, (match["value"],)))
    return LabelSelector(expressions=tuple(requirements))
