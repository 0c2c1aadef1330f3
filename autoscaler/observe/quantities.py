"""Resource lists of the API as vectors: what does not parse is named, never guessed and never an exception."""

from collections.abc import Mapping

from autoscaler.model.policy import Resources
from autoscaler.model.quantity import QuantityError, resource_amount
from autoscaler.model.resources import Vector


def vector_of(amounts: Mapping[str, str] | None, faults: list[str], *, where: str = "") -> Vector:
    """The readable amounts by name; each unreadable one adds a line to `faults` that begins with `where`."""
    vector: Vector = {}
    for name, text in sorted((amounts or {}).items()):
        try:
            vector[name] = resource_amount(_unit_name(name), text)
        except QuantityError as error:
            faults.append(f"{where}{name}: {error}")
    return vector


def ratios_of(amounts: Mapping[str, str] | None, faults: list[str]) -> Vector:
    """A LimitRange's ratios in thousandths, whatever the unit of their resource; an unreadable one adds to `faults`."""
    ratios: Vector = {}
    for name, text in sorted((amounts or {}).items()):
        try:
            ratios[name] = resource_amount("cpu", text)
        except QuantityError as error:
            faults.append(f"maxLimitRequestRatio {name}: {error}")
    return ratios


def _unit_name(key: str) -> str:
    """The resource behind a quota key: `requests.cpu` and `limits.cpu` are milli-cores as `cpu` is."""
    return key.removeprefix("requests.").removeprefix("limits.")


class AcceleratorNames:
    """Which resource names are accelerators, remembered by name: asked for every container of every pod."""

    def __init__(self, resources: Resources) -> None:
        self._boards = frozenset(resources.boards)
        self._slices = resources.slices
        self._known: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = name in self._boards or name.startswith(self._slices)
        return known

    def asked(self, amounts: Mapping[str, str] | None) -> bool:
        """Whether a resource list names an accelerator with anything but a plain zero."""
        return amounts is not None and any(name in self and text != "0" for name, text in amounts.items())
