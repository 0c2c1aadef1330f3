"""The result of a benchmark: a value against its bar, printed as one line of JSON."""

from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(frozen=True)
class Result:
    """`ok` only if every bar is met; `extra` carries the figures behind the value."""

    id: str
    value: float
    unit: str
    bar: str
    ok: bool
    extra: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """The JSON line."""
        plain = {
            "id": self.id,
            "value": round(self.value, 4),
            "unit": self.unit,
            "bar": self.bar,
            "ok": self.ok,
        }
        return msgspec.json.encode(plain | self.extra).decode()
