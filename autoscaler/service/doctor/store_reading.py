"""Asks the metrics store what the checks need: a handful of queries, whatever the size of the fleet.

A store that fails is an answer too: the fault says what kind of failure it is, since each has a mend of its own.
"""

import math
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from autoscaler.model.policy import Policy
from autoscaler.observe.answers import UNREADABLE, AnswerError, vector_rows
from autoscaler.observe.profiles import Profile
from autoscaler.observe.prometheus import (
    NotPrometheus,
    NotServed,
    PrometheusClient,
    PrometheusError,
    Refused,
    ServerError,
    Throttled,
    TimedOut,
    Unreachable,
)
from autoscaler.observe.queries import selector
from autoscaler.service.clock import Clock
from autoscaler.service.doctor.gathered import (
    Labels,
    Published,
    Rows,
    StoreFacts,
    StoreFault,
    StoreFaultKind,
    Targets,
)
from autoscaler.service.doctor.owner_labels import KNOWN, owner_labels
from autoscaler.service.faults import ServiceError
from autoscaler.service.peers import prometheus_client
from autoscaler.service.settings import Settings

GPU_NAMES: Final = (
    "(?i:dcgm_|nvidia_|nv_gpu|gpu_|amd_gpu|rocm|habanalabs|gaudi|xpum_|hw_gpu|hami_|vgpu|device_utilization|hostcore|"
    "npu_|container_npu|ascend|kubernetes_io:container_accelerator|container_accelerator|neureality|tegra).*"
)
"""How metrics of GPU exporters begin; our own begin so too and are left out."""
_OUR_NAMES: Final = "gpu_autoscaler_.*"
SOURCE_LABELS: Final = ("job", "instance", "prometheus", "prometheus_replica", "replica", "cluster")
_PATHS: Final = ("", "/prometheus", "/api/prom", "/select/0/prometheus")
"""Where stores keep the query API: plain, behind a route prefix, Cortex and Mimir, VictoriaMetrics' cluster."""
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SPAN: Final = re.compile(r"(\d+)(ms|[ywdhms])")
_RETENTION: Final = re.compile(r"(?:\d+(?:ms|[ywdhms]))+")
_DAY_MS: Final = 86_400_000
_UNITS_MS: Final = {
    "y": 365 * _DAY_MS,
    "w": 7 * _DAY_MS,
    "d": _DAY_MS,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
"""As Prometheus writes durations: it has years and weeks, ours have not."""
_SAMPLE: Final = 5
_STEPS: Final = 60

_labels_decoder = msgspec.json.Decoder(dict[str, str])


async def read_store(
    settings: Settings,
    policy: Policy,
    profiles: Sequence[Profile],
    *,
    clock: Clock,
    show: Callable[[str], None],
) -> StoreFacts:
    """What the store says; never raises for what it does."""
    if not settings.prometheus_url:
        return StoreFacts(fault=StoreFault(kind="unset", detail="AUTOSCALER_PROMETHEUS_URL is not set"))
    facts = StoreFacts()
    show("the metrics store")
    try:
        async with await prometheus_client(settings) as client:
            asking = _Asking(client, policy, profiles, show)
            await asking.everything(clock)
            facts = asking.facts
    except (PrometheusError, AnswerError) as error:
        fault = fault_of(error)
        if fault.kind == "not-prometheus":
            show("the metrics store at other paths")
            fault = replace(fault, working_url=await _working_url(settings))
        return replace(facts, fault=fault)
    except (ServiceError, OSError) as error:  # the certificates' file is missing or holds none
        return replace(facts, fault=StoreFault(kind="setup", detail=str(error)))
    return facts


def fault_of(error: PrometheusError | AnswerError) -> StoreFault:
    """What kind of failure an error is: each kind has another mend."""
    kind: StoreFaultKind = "query"
    match error:
        case Refused():
            kind = "auth"
        case NotPrometheus() | AnswerError():
            kind = "not-prometheus"
        case Throttled():
            kind = "throttled"
        case ServerError():
            kind = "server-error"
        case TimedOut():
            kind = "timeout"
        case Unreachable():
            kind = _network(error.__cause__)
        case _:
            pass
    return StoreFault(kind=kind, detail=str(error))


def _network(cause: BaseException | None) -> StoreFaultKind:
    match cause:
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls"
        case aiohttp.ClientConnectorDNSError():
            return "dns"
        case aiohttp.ClientConnectorError() | ConnectionRefusedError():
            return "refused"
        case _:
            return "cut"


async def _working_url(settings: Settings) -> str:
    """An address on the same host that answers as a metrics store does, empty where none is found."""
    parts = urlsplit(settings.prometheus_url)
    for path in _PATHS:
        url = f"{parts.scheme}://{parts.netloc}{path}"
        if url == settings.prometheus_url:
            continue
        try:
            async with await prometheus_client(settings.model_copy(update={"prometheus_url": url})) as client:
                await client.now_ms()
        except PrometheusError:
            continue
        return url
    return ""


@dataclass(slots=True)
class _Asking:
    """One reading in progress; `facts` is what was heard so far."""

    client: PrometheusClient
    policy: Policy
    profiles: Sequence[Profile]
    show: Callable[[str], None]
    facts: StoreFacts = field(default_factory=StoreFacts)

    def _heard(self, **facts: Any) -> None:
        self.facts = replace(self.facts, **facts)

    async def everything(self, clock: Clock) -> None:
        before_ms = clock.now_ms()
        now_ms = await self.client.now_ms()
        self._heard(now_ms=now_ms, minus_own_ms=now_ms - (before_ms + clock.now_ms()) // 2)
        try:
            self._heard(retention_ms=await self._retention_ms())
            await self._series()
        except (PrometheusError, AnswerError) as error:
            # The store works; what was heard before the failing query stays.
            self._heard(fault=fault_of(error))

    async def _retention_ms(self) -> int:
        self.show("the metrics store's retention")
        told = await self.client.status("runtimeinfo")
        return -1 if isinstance(told, NotServed) else parse_retention(told.get("storageRetention", ""))

    async def _series(self) -> None:
        self.show("scrape targets")
        self._heard(targets=await self._targets())
        self.show("GPU series")
        self._heard(published=await self._published())
        live = {row.metric for row in self.facts.published}
        if not live:
            self._heard(foreign=await self._foreign())
        for profile in self.profiles:
            metric = next((signal.metric for signal in profile.signals if signal.metric in live), "")
            if metric:
                self.show(f"labels of {metric}")
                self._heard(rows=(*self.facts.rows, await self._rows(profile, metric)))

    async def _targets(self) -> tuple[Targets, ...]:
        counts: dict[str, list[int]] = {}
        for position, state in enumerate((1, 0)):
            async for labels, value in self._vector(f"count by (job) (up == {state})"):
                counts.setdefault(labels.get("job", ""), [0, 0])[position] += int(value)
        return tuple(Targets(job=job, up=up, down=down) for job, (up, down) in sorted(counts.items()))

    async def _published(self) -> tuple[Published, ...]:
        """Which jobs publish which signal: counted over the window, so that those that stopped are seen."""
        window_ms, history_ms = int(self.policy.evidence.window), int(self.policy.need.history_window)
        signals = {signal.metric for profile in self.profiles for signal in profile.signals}
        names = "|".join(sorted(signals))
        counts: dict[str, dict[str, int]] = {}
        # last_over_time is one of the few functions of a range that keep the metric's name.
        query = f'count by (__name__, job) (last_over_time({{__name__=~"{names}"}}[{window_ms}ms]))'
        async for labels, value in self._vector(query):
            counts.setdefault(labels.get("__name__", ""), {})[labels.get("job", "")] = int(value)
        found = []
        for metric in sorted(counts.keys() & signals):
            # A plain timestamp() shows no series that has ended; the subquery finds those, to its step.
            ended = f"max_over_time(timestamp({metric})[{_window(window_ms)}])"
            newest = await self._times(f"max by (job) (timestamp({metric}) or {ended})")
            began = f"min_over_time(timestamp({metric})[{_window(history_ms)}])"
            oldest = await self._times(f"min by (job) ({began})")
            found += [
                Published(
                    metric=metric,
                    job=job,
                    series=series,
                    newest_ms=newest.get(job, -1),
                    oldest_ms=oldest.get(job, -1),
                )
                for job, series in sorted(counts[metric].items())
            ]
        return tuple(found)

    async def _times(self, query: str) -> dict[str, int]:
        return {
            labels.get("job", ""): round(value * 1000)
            async for labels, value in self._vector(query)
            if value > 0
        }

    async def _foreign(self) -> dict[str, int]:
        query = f'count by (__name__) ({{__name__=~"{GPU_NAMES}",__name__!~"{_OUR_NAMES}"}})'
        found = {labels.get("__name__", ""): int(value) async for labels, value in self._vector(query)}
        return dict(sorted(found.items()))

    async def _rows(self, profile: Profile, metric: str) -> Rows:
        """Which labels there are is seen on a few series; then the whole fleet is asked for those of interest."""
        series = selector(metric, profile.match)
        names: set[str] = set(KNOWN)
        sample = f"topk by (job) ({_SAMPLE}, {series}) or bottomk by (job) ({_SAMPLE}, {series})"
        async for labels, _ in self._vector(sample):
            names |= {name for name in labels if _LABEL.fullmatch(name)}
        kinds = {variant.label for variant in profile.variants}
        wanted = sorted({*owner_labels(names), *SOURCE_LABELS, *profile.labels, *kinds})
        found = self._vector(f"count by ({', '.join(wanted)}) ({series})")
        return Rows(profile=profile, metric=metric, rows=tuple([labels async for labels, _ in found]))

    async def _vector(self, query: str) -> AsyncIterator[tuple[Labels, float]]:
        """The rows of an answer; values that are no numbers are left out."""
        answer = await self.client.query(query)
        self._heard(warnings=tuple(sorted({*self.facts.warnings, *answer.warnings})))
        for rows in vector_rows(answer):
            for row in rows:
                try:
                    value = float(row.value[1])
                    labels = _labels_decoder.decode(row.metric)
                except UNREADABLE as error:
                    raise AnswerError(f"unreadable row: {error}") from error
                if math.isfinite(value):
                    yield labels, value


def parse_retention(text: str) -> int:
    """The time in a retention such as `15d`, `1w3d` or `15d or 10GiB`; -1 where it names none."""
    for word in text.split():
        if _RETENTION.fullmatch(word):
            return sum(int(count) * _UNITS_MS[unit] for count, unit in _SPAN.findall(word))
    return -1


def _window(length_ms: int) -> str:
    """The range and step of a subquery."""
    return f"{length_ms}ms:{max(1000, length_ms // _STEPS)}ms"
