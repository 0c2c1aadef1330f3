"""The part of PromQL that our own queries are written in, as a tree.

It exists so that queries can be answered without a store (see `still_store`). What is outside that part is a fault that
names it, never a guess.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

_TOKENS: Final = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.]))
    | (?P<duration>(?:\d+(?:ms|[smhdwy]))+)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<name>:?[a-zA-Z_][a-zA-Z0-9_:]*)
    | (?P<sign>=~|!~|[=!<>]=|[-+*/(){}\[\],=:<>])
    )""",
    re.VERBOSE,
)
_UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
    "y": 31_536_000_000,
}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'"}
AGGREGATES: Final = frozenset({"sum", "min", "max", "avg", "count"})
SETS: Final = frozenset({"and", "or", "unless"})
COMPARISONS: Final = frozenset({"==", "!=", "<", ">", "<=", ">="})
_PRECEDENCE: Final = {
    "or": 1,
    "and": 2,
    "unless": 2,
    **dict.fromkeys(COMPARISONS, 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}

T = TypeVar("T")


class PromqlError(ValueError):
    """The query is not in the part of the language that is read here."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """`label operator value`; the operators are =, !=, =~ and !~."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    """Series by name (empty: any) and matchers: their values at one instant."""

    name: str
    matchers: tuple[Matcher, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """Everything of `inner` in the time before: samples of a selector, or any expression every `step_ms`."""

    inner: "Node"
    range_ms: int
    step_ms: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    function: str
    arguments: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregation by labels."""

    function: str
    inner: "Node"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """Two sides by an operator, matched on all labels."""

    operator: str
    left: "Node"
    right: "Node"


Node: TypeAlias = Number | Selector | Window | Call | Aggregate | Binary


def parse_promql(text: str) -> Node:
    """The tree of a query; raises `PromqlError` for what is not read here."""
    reader = _Reader(_tokens(text), text)
    try:
        tree = reader.expression(1)
    except RecursionError:
        raise PromqlError("nested too deeply") from None
    reader.expect_end()
    return tree


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKENS.match(text, at)
        if match is None or match.lastgroup is None:
            raise PromqlError(f"unreadable at {text[at : at + 20]!r}")
        found.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    return found


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[tuple[str, str]], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0

    def expression(self, least: int) -> Node:
        left = self._operand()
        while (binds := _PRECEDENCE.get(self._peek(), 0)) >= least:
            _, operator = self._next()
            left = Binary(operator, left, self.expression(binds + 1))
        return left

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._fault()

    def _operand(self) -> Node:
        inner = self._primary()
        while self._take("["):
            range_ms, step_ms = self._duration(), 0
            if self._take(":"):
                step_ms = self._duration()
            elif not isinstance(inner, Selector):
                raise self._fault()
            self._expect("]")
            inner = Window(inner, range_ms, step_ms)
        return inner

    def _primary(self) -> Node:
        if self._peek() == "{":
            return Selector("", self._list("{", "}", self._matcher))
        if self._take("("):
            inner = self.expression(1)
            self._expect(")")
            return inner
        kind, token = self._next()
        if kind == "number":
            return Number(float(token))
        if kind != "name":
            self._at -= 1
            raise self._fault()
        if token in AGGREGATES:
            return self._aggregate(token)
        if self._peek() == "(":
            return Call(token, self._list("(", ")", lambda: self.expression(1)))
        return Selector(token, self._list("{", "}", self._matcher) if self._peek() == "{" else ())

    def _aggregate(self, function: str) -> Aggregate:
        labels = self._list("(", ")", self._label) if self._take("by") else ()
        self._expect("(")
        inner = self.expression(1)
        self._expect(")")
        return Aggregate(function, inner, labels)

    def _label(self) -> str:
        kind, label = self._next()
        if kind != "name":
            raise self._fault()
        return label

    def _matcher(self) -> Matcher:
        label = self._label()
        _, operator = self._next()
        kind, value = self._next()
        if kind != "text" or operator not in {"=", "!=", "=~", "!~"}:
            raise self._fault()
        return Matcher(label, operator, _unescaped(value))

    def _list(self, opening: str, closing: str, item: Callable[[], T]) -> tuple[T, ...]:
        self._expect(opening)
        items: list[T] = []
        while not self._take(closing):
            if items:
                self._expect(",")
            items.append(item())
        return tuple(items)

    def _duration(self) -> int:
        kind, token = self._next()
        if kind != "duration":
            raise self._fault()
        return sum(int(a) * _UNITS_MS[unit] for a, unit in re.findall(r"(\d+)(ms|[smhdwy])", token))

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise PromqlError(f"{self._text!r} ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] in {("sign", token), ("name", token)}:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._fault()

    def _fault(self) -> PromqlError:
        rest = " ".join(token for _, token in self._tokens[self._at : self._at + 5])
        return PromqlError(f"not read here: {rest or 'the end'!r} in {self._text!r}")


def _unescaped(token: str) -> str:
    def replace(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter not in _ESCAPES:
            raise PromqlError(f"unknown escape in {token}")
        return _ESCAPES[letter]

    return re.sub(r"\\(.)", replace, token[1:-1], flags=re.DOTALL)
