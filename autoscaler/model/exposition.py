"""What is made of one scrape of an exporter, read without a cluster: the report that views show."""

from typing import Literal

import msgspec

from autoscaler.model.plan import Verdict


class MetricRead(msgspec.Struct, frozen=True):
    """A metric of a profile that has series: the scale that it is read in, and its unit."""

    metric: str
    scale: str
    unit: str


class ProfileRead(msgspec.Struct, frozen=True):
    """A profile that recognises series of the text; `live` says whether any of its signals was read.

    `owner_labels` and `device_label` are those that series here really name their owner and their device by.
    """

    profile: str
    metrics: tuple[MetricRead, ...]
    series: int
    owner_labels: tuple[str, ...] = ()
    device_label: str = ""
    live: bool = True


class SignalRead(msgspec.Struct, frozen=True):
    """A value as it stands in the text; what is no finite number is told by its name."""

    signal: str
    device: str
    value: float | Literal["NaN", "+Inf", "-Inf"]
    unit: str


class PodJudged(msgspec.Struct, frozen=True):
    """A pod that holds accelerators, judged as if these values had filled the whole evidence window.

    `reason` is `Measured`, or the reason code of why the accelerators' own figures are not; a verdict beside such a code is
    what the pod's inference server says, and nothing would be done on it.
    """

    namespace: str
    pod: str
    verdict: Verdict
    reason: str
    detail: str = ""
    held: dict[str, int] = {}
    signals: tuple[SignalRead, ...] = ()


class DeviceUnowned(msgspec.Struct, frozen=True):
    """A device whose series name no pod; `peak` is its activity as a share of 1, `node` is empty where it is not known."""

    device: str
    node: str
    peak: float


class Ghost(msgspec.Struct, frozen=True):
    """A pod that series name and the objects do not have."""

    namespace: str
    pod: str
    profile: str
    devices: tuple[str, ...] = ()


class ExpositionReport(msgspec.Struct, frozen=True):
    """Everything that is made of a text; `dropped` counts values that were not believed by their reason."""

    profiles: tuple[ProfileRead, ...] = ()
    pods: tuple[PodJudged, ...] = ()
    dropped: dict[str, int] = {}
    unowned: tuple[DeviceUnowned, ...] = ()
    ghosts: tuple[Ghost, ...] = ()
    notes: tuple[str, ...] = ()
