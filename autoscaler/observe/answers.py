"""The Prometheus query API's answers as typed values.

Sample values arrive as text: "NaN" and "+Inf" stay what they are here, and whoever reads them drops them by name.
This module knows bytes, no sockets.
"""

from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

_PIECE_BYTES: Final = 256 * 1024
"""Decoded in one call: some 2 ms during which no other thread runs Python."""
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""All that decoding raises for hostile bytes; nesting too deep to follow is a `RecursionError`."""
EARLIEST_S: Final = 946_684_800.0
LATEST_S: Final = 7_258_118_400.0
"""The years 2000 to 2200: a time outside is no clock and no time of a sample."""
PARTIAL: Final = "the store says that its answer is partial"
_STYLE: Final = "PromQL info:"
"""How Prometheus begins infos about how a query is written; other infos are read as warnings."""
_OPENING: Final = b'{"metric":'
_NEXT: Final = b',{"metric":'


class Row(msgspec.Struct, gc=False):
    """One series of an instant vector: its labels as the store wrote them, and (seconds, text of the value)."""

    metric: msgspec.Raw
    value: tuple[float, str]


class AnswerError(ValueError):
    """The bytes are not an answer of the query API, or not of the expected type."""


_Content = TypeVar("_Content")


class _Data(msgspec.Struct):
    kind: str = msgspec.field(name="resultType", default="")
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, Generic[_Content]):
    """What every answer of the API is wrapped in; `isPartial` is VictoriaMetrics' way to say so."""

    status: str
    data: _Content | None = None
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: list[str] | None = None
    infos: list[str] | None = None
    partial: bool = msgspec.field(name="isPartial", default=False)

    def said(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Warnings and infos. What is no remark on the query's style may be about what is missing: a warning."""
        infos = self.infos or []
        warnings = [*(self.warnings or []), *(text for text in infos if not text.startswith(_STYLE))]
        if self.partial:
            warnings.append(PARTIAL)
        return tuple(warnings), tuple(text for text in infos if text.startswith(_STYLE))


_envelope_decoder = msgspec.json.Decoder(_Envelope[_Data])
_names_decoder = msgspec.json.Decoder(_Envelope[list[str]])
_facts_decoder = msgspec.json.Decoder(_Envelope[dict[str, Any]])
_rows_decoder = msgspec.json.Decoder(list[Row])
_labels_decoder = msgspec.json.Decoder(dict[str, str])
_scalar_decoder = msgspec.json.Decoder(tuple[float, str])


class Answer(msgspec.Struct, frozen=True):
    """A successful answer: `result` is undecoded JSON of type `kind`.

    `warnings` say that something may be missing, `infos` how the query could be better written.
    """

    kind: str
    result: bytes
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()


class Failure(msgspec.Struct, frozen=True):
    """The API's own error answer."""

    error_type: str
    message: str


class Names(msgspec.Struct, frozen=True):
    """A list of names, such as a label's values."""

    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def decode_answer(body: bytes) -> Answer | Failure:
    """The envelope of a body; raises `AnswerError` for anything that is not the query API's JSON."""
    data, envelope = _open(body, _envelope_decoder)
    if data is None:
        return Failure(envelope.error_type, envelope.error)
    if not data.kind:
        raise AnswerError("not an answer of the query API: no status and result")
    warnings, infos = envelope.said()
    return Answer(kind=data.kind, result=bytes(data.result), warnings=warnings, infos=infos)


def decode_names(body: bytes) -> Names | Failure:
    """An answer that is a list of names; raises `AnswerError` for anything else."""
    data, envelope = _open(body, _names_decoder)
    if data is None:
        return Failure(envelope.error_type, envelope.error)
    return Names(tuple(data), envelope.said()[0])


def decode_facts(body: bytes) -> dict[str, str] | Failure:
    """An answer of named facts, such as a store's flags, each as text; nested ones are left out."""
    data, envelope = _open(body, _facts_decoder)
    if data is None:
        return Failure(envelope.error_type, envelope.error)
    plain = {name: value for name, value in data.items() if isinstance(value, str | int | float)}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in plain.items()
    }


def _open(
    body: bytes, decoder: "msgspec.json.Decoder[_Envelope[_Content]]"
) -> tuple[_Content | None, _Envelope[_Content]]:
    """The content of a successful answer, None of a failed one."""
    try:
        envelope = decoder.decode(body)
    except UNREADABLE as error:
        raise AnswerError(f"not an answer of the query API: {error}") from error
    if envelope.status == "error":
        return None, envelope
    if envelope.status != "success" or envelope.data is None:
        raise AnswerError("not an answer of the query API: no status and result")
    return envelope.data, envelope


def vector_rows(answer: Answer) -> Iterator[list[Row]]:
    """The rows of an instant vector in pieces, so that other threads get their turn between them.

    Raises `AnswerError` for another result type or malformed rows.
    """
    if answer.kind != "vector":
        raise AnswerError(f"expected a vector, got a {answer.kind}")
    for piece in pieces_of(answer.result):
        try:
            yield _rows_decoder.decode(piece)
        except UNREADABLE as error:
            raise AnswerError(f"unreadable vector: {error}") from error


def scalar_of(answer: Answer) -> float:
    """The value of a scalar, or of a vector's only row (VictoriaMetrics has no scalars); raises `AnswerError`."""
    try:
        match answer.kind:
            case "scalar":
                return float(_scalar_decoder.decode(answer.result)[1])
            case "vector":
                (row,) = _rows_decoder.decode(answer.result)
                return float(row.value[1])
            case _:
                raise AnswerError(f"expected a scalar, got a {answer.kind}")
    except UNREADABLE as error:
        if isinstance(error, AnswerError):
            raise
        raise AnswerError(f"unreadable scalar: {error}") from error


def clock_ms(answer: Answer) -> int:
    """The answer to `time()` in ms; raises `AnswerError` for what no clock shows."""
    seconds = scalar_of(answer)
    if not EARLIEST_S <= seconds <= LATEST_S:  # also not-a-number
        raise AnswerError(f"{seconds:g} s is no time of a clock")
    return round(seconds * 1000)


def jobs_of(answer: Answer) -> frozenset[str]:
    """The scrape jobs that a vector is grouped by; series without one have the empty name."""
    found: set[str] = set()
    for rows in vector_rows(answer):
        for row in rows:
            try:
                found.add(_labels_decoder.decode(row.metric).get("job", ""))
            except UNREADABLE as error:
                raise AnswerError(f"unreadable labels: {error}") from error
    return frozenset(found)


def pieces_of(result: bytes) -> Iterator[bytes]:
    """A vector or matrix cut between its series: inside a JSON string the quote of `_NEXT` would be escaped."""
    text = result.strip()
    if not (text.startswith(b"[" + _OPENING) and text.endswith(b"]")):
        yield text
        return
    start, end = 1, len(text) - 1
    while start < end:
        cut = text.find(_NEXT, start + _PIECE_BYTES, end)
        cut = end if cut < 0 else cut
        yield b"[" + text[start:cut] + b"]"
        start = cut + 1
