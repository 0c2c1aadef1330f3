"""What a device that is held by a claim is called elsewhere.

The rest of the system counts extended resources. A device gets the name of the one that it stands for; a device that
stands for none (a network card) is none of our business.
"""

from typing import Final

from autoscaler.observe.claims import AMD, NVIDIA, ClaimsView, DeviceRow, Wanted
from autoscaler.observe.quantities import AcceleratorNames

_WHOLE: Final = {
    NVIDIA: "nvidia.com/gpu",
    AMD: "amd.com/gpu",
    "gpu.intel.com": "gpu.intel.com/xe",
    "gaudi.intel.com": "habana.ai/gaudi",
}
"""What a vendor's device plugin calls the whole board that its driver for claims hands out."""


class DeviceNames:
    """Gives devices the name of the accelerator resource that they stand for; an empty name: no accelerator.

    In this order: what the class says it backs, what the vendor calls the board or slice, the driver's own name where
    the policy lists that.
    """

    def __init__(self, view: ClaimsView) -> None:
        self._accelerators = AcceleratorNames(view.resources)
        self._boards = frozenset(view.resources.boards)
        self._classes = {row.name: row for row in view.classes.values()}
        self._named: dict[tuple[str, str | None, tuple[str, str] | None], str] = {}
        backed: dict[str, set[str]] = {}
        for row in view.classes.values():
            if row.whole_driver and row.extended in self._accelerators:
                backed.setdefault(row.driver, set()).add(row.extended)
        self._backed = {driver: names.pop() for driver, names in backed.items() if len(names) == 1}

    def is_board(self, name: str) -> bool:
        """Whether one of the resource is a whole board."""
        return name in self._boards

    def accelerates(self, name: str) -> bool:
        """Whether the resource is an accelerator."""
        return name in self._accelerators

    def of_device(self, driver: str, device: DeviceRow | None, wanted: Wanted | None = None) -> str:
        """The name of a device, which no slice may show any longer, for the request that it was given for."""
        asked = (wanted.device_class, wanted.profile) if wanted is not None else None
        key = (driver, device.profile if device is not None else None, asked)
        name = self._named.get(key)
        if name is None:
            name = self._named[key] = self._of_device(driver, device, wanted)
        return name

    def _of_device(self, driver: str, device: DeviceRow | None, wanted: Wanted | None) -> str:
        if wanted is not None and (backed := self._extended(wanted.device_class)):
            return backed
        if (
            device is None
            and wanted is not None
            and (named := self.of_class(wanted.device_class, wanted.profile))
        ):
            return named
        return self._vendor(driver, device.profile if device is not None else "")

    def of_class(self, device_class: str, profile: str = "") -> str:
        """The name of devices yet to be given."""
        if backed := self._extended(device_class):
            return backed
        row = self._classes.get(device_class)
        if row is None:
            return self._vendor(device_class, profile)
        part = profile or row.profile or ("any" if row.sliced else "")
        return self._vendor(row.driver or device_class, part)

    def share_of(self, name: str) -> str:
        """The name under which a device is counted that several pods use; its own where the policy knows no such."""
        share = f"{name}.shared"
        return share if share in self._accelerators else name

    def _extended(self, device_class: str) -> str:
        row = self._classes.get(device_class)
        return row.extended if row is not None and row.extended in self._accelerators else ""

    def _vendor(self, driver: str, profile: str) -> str:
        names = [_WHOLE.get(driver, ""), self._backed.get(driver, ""), driver]
        if profile:
            prefix = "nvidia.com/mig-" if driver == NVIDIA else "amd.com/" if driver == AMD else ""
            names = [f"{prefix}{profile}"] if prefix else names
        return next((name for name in names if name in self._accelerators), "")
