"""An exporter's text as samples, for reading it without a store.

Read line by line: a bad line is named by its number and the rest is still read, and a counter keeps the name that it is
queried by (a reader of whole families gives it another).
"""

from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families

_UNREADABLE: Final = (ValueError, IndexError, KeyError, OverflowError)
"""What the client library's parser raises for hostile lines."""
_SHOWN: Final = 80


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One sample: metric, labels and value. An empty label is none, as in a store; a time beside the value is not kept."""

    name: str
    labels: dict[str, str]
    value: float


class BadLine(msgspec.Struct, frozen=True):
    """A line that is no sample: its number, from 1, and why."""

    number: int
    why: str


class Exposition(msgspec.Struct, frozen=True):
    """What a text holds; `repeated` counts series that stand there several times, of which the last one is kept."""

    samples: tuple[Sample, ...] = ()
    bad: tuple[BadLine, ...] = ()
    repeated: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that have samples, sorted."""
        return tuple(sorted({sample.name for sample in self.samples}))

    def has_label(self, *labels: str) -> bool:
        """Whether any sample carries one of the labels."""
        return any(label in sample.labels for sample in self.samples for label in labels)


def parse_exposition(text: str) -> Exposition:
    """The samples of a text in Prometheus' or OpenMetrics' format; never raises."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    bad: list[BadLine] = []
    total = 0
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        try:
            (family,) = text_string_to_metric_families(stripped)
            (read,) = family.samples
            labels = {name: value for name, value in read.labels.items() if value}
            sample = Sample(read.name, labels, float(read.value))
        except _UNREADABLE as error:
            bad.append(BadLine(number, f"{' '.join(str(error).split())[:_SHOWN]}: {stripped[:_SHOWN]}"))
            continue
        total += 1
        found[(sample.name, tuple(sorted(sample.labels.items())))] = sample
    return Exposition(tuple(found.values()), tuple(bad), repeated=total - len(found))
