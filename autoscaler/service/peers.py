"""The two peers of a live process, opened from settings: the API server and the metrics store.

Whatever is wrong with the way to them is a configuration error with one sentence; whatever they answer is not judged here.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from autoscaler.kube.config import ClusterAccess, find_access
from autoscaler.kube.errors import AccessError
from autoscaler.kube.session import KubeSession, RequestRecord, SessionLimits
from autoscaler.model.policy import Policy
from autoscaler.observe.answers import Answer
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.profiles import Profile, ProfileError, load_profiles
from autoscaler.observe.prometheus import PrometheusClient, ServerError, TimedOut
from autoscaler.observe.reader import SeriesReader, Spans
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.serving import ServingProfile, load_serving_profiles
from autoscaler.service.config_root import shipped_config
from autoscaler.service.faults import ConfigError
from autoscaler.service.settings import Settings
from autoscaler.service.telemetry import Metrics

_PATH: Final = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/[^/]+(?=/[^/]))?/([^/]+)(?:/[^/]+(?:/([^/]+))?)?"
)
"""Resource and subresource of a request's path; names of objects are never a label."""
_Profiles = TypeVar("_Profiles")
_Answered = TypeVar("_Answered", Answer, MatrixAnswer)
_FUNCTION: Final = re.compile(r"\b(\w+_over_time|timestamp|time|count)\b")


def require_live(settings: Settings) -> None:
    """Raises `ConfigError` when a live cluster cannot be judged for want of a setting."""
    if not settings.prometheus_url:
        raise ConfigError(
            "AUTOSCALER_PROMETHEUS_URL is not set; it is required to judge a live cluster, e.g. "
            "http://prometheus.monitoring:9090 (plan, report and explain also take a saved snapshot with -f)"
        )


async def cluster_access(settings: Settings, environ: Mapping[str, str]) -> ClusterAccess:
    """How to reach the API server."""
    try:
        return await find_access(
            kubeconfig=settings.kubeconfig, context=settings.context or None, environ=environ
        )
    except AccessError as error:
        raise ConfigError(f"the way to the API server cannot be worked out: {error}") from None


def kube_session(
    settings: Settings, access: ClusterAccess, metrics: Metrics | None = None, *, agent: str = ""
) -> KubeSession:
    """A session with the operator's rate limits that counts its requests; `agent` names this process in audit logs."""
    limits = SessionLimits(reads_per_s=settings.api_qps, reads_burst=settings.api_burst)
    counted = _count_requests(metrics) if metrics else None
    return KubeSession(access, limits=limits, on_request=counted, agent=agent)


async def exporter_profiles(settings: Settings) -> tuple[Profile, ...]:
    """The shipped profiles and the operator's own, which replace shipped ones of the same name."""
    return await asyncio.to_thread(_load, load_profiles, settings.profiles_dir, ".")


async def serving_profiles(settings: Settings) -> tuple[ServingProfile, ...]:
    """The same for inference servers: the folder `serving` beside the exporters'."""
    return await asyncio.to_thread(_load, load_serving_profiles, settings.profiles_dir, "serving")


def _load(load: Callable[..., _Profiles], own: Path | None, part: str) -> _Profiles:
    if own is not None and not own.is_dir():
        raise ConfigError(f"exporter profiles: {own} is not a folder")
    folders = (shipped_config() / "profiles" / part, *((own / part,) if own else ()))
    try:
        return load(*folders)
    except ProfileError as error:
        raise ConfigError(f"exporter profile: {error}") from None


async def prometheus_client(settings: Settings, metrics: Metrics | None = None) -> PrometheusClient:
    """The client of the metrics store."""
    ca_file = settings.prometheus_ca_file
    if ca_file is not None and not await asyncio.to_thread(ca_file.is_file):
        raise ConfigError(f"AUTOSCALER_PROMETHEUS_CA_FILE is not a file: {ca_file}")
    options: dict[str, Any] = {
        "token_file": settings.prometheus_token_file,
        "ca_file": ca_file,
        "headers": {name: value.get_secret_value() for name, value in settings.prometheus_headers.items()},
        "params": settings.prometheus_params,
        "method": "GET" if settings.prometheus_method == "get" else "POST",
        "timeout_s": settings.prometheus_timeout / 1000,
    }
    try:
        if metrics is None:
            return PrometheusClient(settings.prometheus_url, **options)
        return CountedPrometheus(settings.prometheus_url, metrics, **options)
    except ValueError as error:
        raise ConfigError(f"the metrics store's settings: {error}") from None


class CountedPrometheus(PrometheusClient):
    """The client, with every answer counted under the name of its query's function: few names, whatever the profiles."""

    def __init__(self, url: str, metrics: Metrics, **options: Any) -> None:
        super().__init__(url, **options)
        self._metrics = metrics

    async def query(self, promql: str, *, at_ms: int | None = None) -> Answer:
        """As the client's."""
        return await self._counted(query_name(promql), super().query(promql, at_ms=at_ms))

    async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
        """As the client's."""
        asked = super().query_range(promql, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms)
        return await self._counted(f"range:{query_name(promql)}", asked)

    async def _counted(self, name: str, asked: Awaitable[_Answered]) -> _Answered:
        began_s = self._metrics.now_s()
        outcome = "error"
        try:
            answer = await asked
            outcome = "partial" if answer.warnings else "empty" if answer.result.strip() == b"[]" else "ok"
        except TimedOut:
            outcome = "timeout"
            raise
        except ServerError as error:
            outcome = "timeout" if error.timed_out else "error"
            raise
        else:
            return answer
        finally:
            self._metrics.query_answered(name, outcome, self._metrics.now_s() - began_s)


def query_name(promql: str) -> str:
    """The first function word of a query; few of them exist, whatever metrics the profiles name."""
    found = _FUNCTION.search(promql)
    return found.group(1) if found else "other"


def spans_of(policy: Policy) -> Spans:
    """What a cycle asks the metrics store for, as plain numbers: a `Duration` prints itself with a unit in queries."""
    return Spans(
        window_ms=int(policy.evidence.window),
        history_ms=int(policy.need.history_window),
        interval_ms=int(policy.evidence.interval),
        source_job=policy.evidence.source_job,
        profiles=policy.evidence.profiles,
        namespaces=policy.resources.namespaces,
    )


async def read_series(reader: SeriesReader, session: KubeSession, policy: Policy) -> SeriesReading:
    """One reading; faults of the store are in it."""
    return await reader.read(spans_of(policy), api_now_ms=session.server_time_ms)


def _count_requests(metrics: Metrics) -> Callable[[RequestRecord], None]:
    def count(record: RequestRecord) -> None:
        resource = resource_of(record.path)
        metrics.api_request(verb=record.verb, resource=resource, code=record.outcome)
        if resource == "pods/eviction":
            metrics.eviction_answered(record.outcome)

    return count


def resource_of(path: str) -> str:
    """The resource of a request, with its subresource, such as `deployments/scale`; few of them exist."""
    if path.endswith("selfsubjectaccessreviews"):
        return "reviews"
    found = _PATH.fullmatch(path.partition("?")[0])
    if found is None:
        return "discovery"
    return "/".join(filter(None, found.groups()))
