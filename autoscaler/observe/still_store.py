"""A metrics store made of one scrape: every series has had its one value for ever, sampled at a steady pace.

It answers the reader's own queries, so that a text judged offline takes the same way as the live fleet. Answers are exact
for values that stand still and for times, which move evenly: a window of any expression is worked out from its two ends.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Final, TypeAlias

import msgspec

from autoscaler.observe.answers import Answer
from autoscaler.observe.exposition import Sample
from autoscaler.observe.promql import (
    COMPARISONS,
    SETS,
    Aggregate,
    Binary,
    Call,
    Matcher,
    Node,
    Number,
    PromqlError,
    Selector,
    Window,
    parse_promql,
)
from autoscaler.observe.store_faults import BadQuery

_NAME: Final = "__name__"

Labels: TypeAlias = tuple[tuple[str, str], ...]
Vector: TypeAlias = dict[Labels, float]
Value: TypeAlias = float | Vector


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """A series in a window: its value at both ends, and how many samples it has there."""

    first: float
    last: float
    count: int


_OVER_TIME: Final[Mapping[str, Callable[[Stretch], float]]] = {
    "max_over_time": lambda s: _extreme(max, (s.first, s.last)),
    "min_over_time": lambda s: _extreme(min, (s.first, s.last)),
    "sum_over_time": lambda s: s.count * (s.first + s.last) / 2,
    "avg_over_time": lambda s: (s.first + s.last) / 2,
    "count_over_time": lambda s: s.count,
    "last_over_time": lambda s: s.last,
    "changes": lambda s: 0.0 if s.first == s.last or math.isnan(s.first) else s.count - 1,
    "increase": lambda s: s.last - s.first,
    "delta": lambda s: s.last - s.first,
}
_KEEPS_NAME: Final = frozenset({"last_over_time"})
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": lambda a, b: a / b if b else math.nan if not a or math.isnan(a) else math.copysign(math.inf, a),
}
_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    ">": gt,
    "<=": le,
    ">=": ge,
}
_FOLDED: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "max": lambda values: _extreme(max, values),
    "min": lambda values: _extreme(min, values),
    "sum": lambda values: float(sum(values)),
    "avg": lambda values: float(sum(values)) / len(values),
    "count": lambda values: float(len(values)),
}


class StillStore:
    """Answers queries about samples that do not move; the asking side of a Prometheus client.

    ``now_ms`` is the store's clock and ``interval_ms`` the pace of its samples, the newest of which is not older than that.
    """

    def __init__(self, samples: Iterable[Sample], *, now_ms: int, interval_ms: int) -> None:
        self._now_ms = now_ms
        self._interval_ms = interval_ms
        self._series: defaultdict[str, list[tuple[dict[str, str], Labels, float]]] = defaultdict(list)
        for sample in samples:
            labels = {**sample.labels, _NAME: sample.name}
            self._series[sample.name].append((labels, tuple(sorted(labels.items())), sample.value))
        self._found: dict[Selector, list[tuple[Labels, float]]] = {}

    async def now_ms(self) -> int:
        """The store's clock."""
        return self._now_ms

    async def query(self, promql: str, *, at_ms: int | None = None) -> Answer:
        """The answer to an instant query; raises `BadQuery` for one that is not understood."""
        return self.answer(promql, at_ms=at_ms)

    def answer(self, promql: str, *, at_ms: int | None = None) -> Answer:
        """The same, without waiting."""
        at_ms = self._now_ms if at_ms is None else at_ms
        try:
            value = self._value(parse_promql(promql), at_ms)
        except PromqlError as error:
            raise BadQuery(str(error), error_type="bad_data") from error
        if isinstance(value, dict):
            rows = [{"metric": dict(k), "value": (at_ms / 1000, _number(v))} for k, v in value.items()]
            return Answer(kind="vector", result=msgspec.json.encode(rows))
        return Answer(kind="scalar", result=msgspec.json.encode((at_ms / 1000, _number(value))))

    def _value(self, node: Node, at_ms: int) -> Value:
        match node:
            case Number(value=value):
                return value
            case Selector():
                return dict(self._selected(node))
            case Call():
                return self._called(node, at_ms)
            case Aggregate():
                return self._aggregated(node, at_ms)
            case Binary():
                return _combined(node.operator, self._value(node.left, at_ms), self._value(node.right, at_ms))
            case Window():
                raise PromqlError("a range is no value by itself")

    def _selected(self, node: Selector) -> list[tuple[Labels, float]]:
        """The series of a selector; without a name it looks through all of them."""
        found = self._found.get(node)
        if found is None:
            tests = [_test(matcher) for matcher in node.matchers]
            names = (node.name,) if node.name else tuple(self._series)
            rows = [row for name in names for row in self._series.get(name, ())]
            found = [(key, value) for labels, key, value in rows if all(test(labels) for test in tests)]
            self._found[node] = found
        return found

    def _stretches(self, node: Node, at_ms: int) -> dict[Labels, Stretch]:
        if not isinstance(node, Window):
            raise PromqlError("a function over time needs a range")
        since_ms = at_ms - node.range_ms
        if isinstance(node.inner, Selector) and not node.step_ms:
            count = at_ms // self._interval_ms - since_ms // self._interval_ms
            found = self._selected(node.inner) if count > 0 else ()
            return {key: Stretch(value, value, count) for key, value in found}
        # A subquery's steps are multiples of its step, whenever it is asked.
        count = at_ms // node.step_ms - since_ms // node.step_ms
        if count <= 0:
            return {}
        last_ms = at_ms - at_ms % node.step_ms
        first = _vector(self._value(node.inner, last_ms - (count - 1) * node.step_ms))
        last = _vector(self._value(node.inner, last_ms))
        return {key: Stretch(value, last[key], count) for key, value in first.items()}

    def _called(self, node: Call, at_ms: int) -> Value:
        match node.function, node.arguments:
            case "time", ():
                return at_ms / 1000
            case "timestamp", (Selector() as selector,):
                sample_ms = at_ms - at_ms % self._interval_ms
                return {_nameless(key): sample_ms / 1000 for key, _ in self._selected(selector)}
            case "quantile_over_time", (Number(value=rank), window):
                stretches = self._stretches(window, at_ms).items()
                return {_nameless(key): _between(stretch, rank) for key, stretch in stretches}
            case name, (window,) if name in _OVER_TIME:
                kept = (lambda key: key) if name in _KEEPS_NAME else _nameless
                stretches = self._stretches(window, at_ms).items()
                return {kept(key): float(_OVER_TIME[name](stretch)) for key, stretch in stretches}
            case name, arguments:
                raise PromqlError(f"function {name} with {len(arguments)} such arguments is not read here")

    def _aggregated(self, node: Aggregate, at_ms: int) -> Vector:
        groups: defaultdict[Labels, list[float]] = defaultdict(list)
        labels = frozenset(node.labels)
        for key, value in _vector(self._value(node.inner, at_ms)).items():
            groups[tuple([pair for pair in key if pair[0] in labels])].append(value)
        return {key: _FOLDED[node.function](values) for key, values in groups.items()}


def _combined(operator: str, left: Value, right: Value) -> Value:
    if operator in SETS:
        return _set(operator, _vector(left), _vector(right))
    if operator in COMPARISONS:
        return _compared(operator, _vector(left), right)
    apply = _ARITHMETIC[operator]
    match left, right:
        case dict(), dict():
            others = {_nameless(key): value for key, value in right.items()}
            pairs = {_nameless(key): value for key, value in left.items()}
            return {key: apply(value, others[key]) for key, value in pairs.items() if key in others}
        case dict(), _:
            return {_nameless(key): apply(value, _scalar(right)) for key, value in left.items()}
        case _, dict():
            return {_nameless(key): apply(_scalar(left), value) for key, value in right.items()}
        case _:
            return apply(_scalar(left), _scalar(right))


def _compared(operator: str, left: Vector, right: Value) -> Vector:
    """The series of the left side for which the comparison holds."""
    holds = _COMPARED[operator]
    if not isinstance(right, dict):
        return {key: value for key, value in left.items() if holds(value, right)}
    others = {_nameless(key): value for key, value in right.items()}
    return {key: v for key, v in left.items() if (k := _nameless(key)) in others and holds(v, others[k])}


def _set(operator: str, left: Vector, right: Vector) -> Vector:
    in_left, in_right = ({_nameless(key) for key in side} for side in (left, right))
    if operator == "or":
        return left | {key: value for key, value in right.items() if _nameless(key) not in in_left}
    return {key: v for key, v in left.items() if (_nameless(key) in in_right) == (operator == "and")}


def _test(matcher: Matcher) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels match; an absent label is an empty one."""
    label, value = matcher.label, matcher.value
    match matcher.operator:
        case "=":
            return lambda labels: labels.get(label, "") == value
        case "!=":
            return lambda labels: labels.get(label, "") != value
        case operator:
            try:
                pattern = re.compile(value, re.DOTALL)
            except re.error as error:
                raise PromqlError(f"{value!r} is no regular expression: {error}") from error
            return lambda labels: bool(pattern.fullmatch(labels.get(label, ""))) == (operator == "=~")


def _vector(value: Value) -> Vector:
    if not isinstance(value, dict):
        raise PromqlError("a number stands where series are needed")
    return value


def _scalar(value: Value) -> float:
    if isinstance(value, dict):
        raise PromqlError("series stand where a number is needed")
    return value


def _nameless(key: Labels) -> Labels:
    return tuple([pair for pair in key if pair[0] != _NAME])


def _between(stretch: Stretch, rank: float) -> float:
    first, last = stretch.first, stretch.last
    return first if first == last else first + (last - first) * rank


def _extreme(pick: Callable[[Iterable[float]], float], values: Iterable[float]) -> float:
    """As the store has it: not-a-number only where there is no number at all."""
    numbers = [value for value in values if not math.isnan(value)]
    return pick(numbers) if numbers else math.nan


def _number(value: float) -> str:
    """A value as the query API writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
