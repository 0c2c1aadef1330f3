"""D1 and D2: does the store answer, and does it have series of a GPU exporter."""

import re
from collections.abc import Iterator
from typing import Final

from autoscaler.observe.profiles import Profile
from autoscaler.service.doctor.gathered import Gathered, Published, StoreFacts, StoreFault, StoreFaultKind
from autoscaler.service.doctor.outcome import Outcome, job_name, skipped, some, span

_ADDRESS: Final = "AUTOSCALER_PROMETHEUS_URL"
EXPORTER_WORDS: Final = re.compile(
    r"dcgm|gpu|nvidia|amd|rocm|habana|gaudi|xpu|\bnpu|ascend|hami|neureality|accelerator", re.IGNORECASE
)
"""Words that jobs, monitors and Services of GPU exporters are named with."""
_SUFFIX: Final = re.compile(r"/(?:api/v1(?:/query)?|graph|query|targets|-/\w+)/?$")
_STALE_INTERVALS: Final = 2
_FIXES: Final[dict[StoreFaultKind, str]] = {
    "unset": f"{_ADDRESS}=http://prometheus.monitoring:9090",
    "setup": "AUTOSCALER_PROMETHEUS_CA_FILE=<file with PEM certificates>",
    "dns": f"{_ADDRESS}: no such host; kubectl get services -A | grep -iE 'prometheus|thanos|mimir|victoria'",
    "refused": f"{_ADDRESS}: nothing listens at that port; kubectl get services -A | grep -iE 'prometheus|thanos|mimir'",
    "tls": "AUTOSCALER_PROMETHEUS_CA_FILE=<the certificate that signs the store's>, and the host name that it is for",
    "timeout": f"{_ADDRESS}: packets are lost (NetworkPolicy, firewall), or the store is overloaded",
    "cut": f"{_ADDRESS}: is it http where https is meant, or the other way round?",
    "auth": "AUTOSCALER_PROMETHEUS_TOKEN_FILE=<bearer token>, or AUTOSCALER_PROMETHEUS_HEADERS=X-Scope-OrgID=<tenant>",
    "not-prometheus": f"{_ADDRESS}=<base of the query API, without /api/v1>; behind a login page use the address inside the cluster",
    "throttled": "raise the store's query limits for this tenant, or AUTOSCALER_CYCLE",
    "server-error": "look at the store's own log: it answers, and fails",
    "query": "the store refuses PromQL that Prometheus 2.26 and later accept: give the address of its query API",
}


def check_store(seen: Gathered) -> Outcome:
    """D1: reachable, and our credentials accepted."""
    store, url = seen.store, seen.settings.prometheus_url
    if store.fault is not None:
        return Outcome("failed", _fault_words(store.fault), _fault_fix(store.fault, url))
    if store.warnings:
        found = f"answers, with {len(store.warnings)} warnings: {some(store.warnings, shown=1)}"
        return Outcome("warning", found, "look at the store's own log: partial answers are no evidence")
    return Outcome("ok", "answers, and accepts what we send with it")


def _fault_words(fault: StoreFault) -> str:
    names: dict[StoreFaultKind, str] = {
        "dns": "its name does not resolve",
        "refused": "the connection was refused",
        "tls": "TLS failed",
        "timeout": "no answer in time",
        "cut": "the connection was cut",
        "auth": "our credentials are not accepted",
        "not-prometheus": "something answers there that is not the query API",
        "throttled": "we are throttled",
        "server-error": "the store fails",
        "query": "it does not evaluate a query",
    }
    name = names.get(fault.kind, "")
    return f"{name}: {fault.detail}" if name else fault.detail


def _fault_fix(fault: StoreFault, url: str) -> str:
    if fault.working_url:
        return f"{_ADDRESS}={fault.working_url}"
    shortened = _SUFFIX.sub("", url)
    if fault.kind == "not-prometheus" and shortened != url:
        return f"{_ADDRESS}={shortened}"
    return _FIXES[fault.kind]


def check_series(seen: Gathered) -> Outcome:
    """D2: series of a known exporter, from a trusted job, young enough."""
    store = seen.store
    if store.now_ms < 0:
        return skipped("the metrics store does not answer (D1)")
    if store.fault is not None and not store.published:
        return skipped(f"the store did not answer the queries for it (D1): {store.fault.detail}")
    if not store.published:
        return _nothing(seen)
    pattern = seen.policy.evidence.source_job
    trusted = [one for one in store.published if not pattern or matches(pattern, one.job)]
    if not trusted:
        jobs = sorted({one.job for one in store.published})
        found = f"GPU series come from {some(map(job_name, jobs))}; evidence.sourceJob {pattern!r} matches none of them"
        return Outcome("failed", found, f"AUTOSCALER_EVIDENCE_SOURCE_JOB={jobs[0]}")
    telemetry = seen.snapshot.telemetry if seen.snapshot else None
    if telemetry is not None and telemetry.untrusted:
        found = (
            f"several scrape jobs publish GPU series, so none is believed ({'; '.join(telemetry.untrusted)})"
        )
        largest = max(trusted, key=lambda one: (one.series, one.job))
        return Outcome("failed", found, f"AUTOSCALER_EVIDENCE_SOURCE_JOB={largest.job}")
    return _aged(seen, trusted)


def _aged(seen: Gathered, trusted: list[Published]) -> Outcome:
    lines = list(_lines(seen, trusted))
    newest_ms = max(one.newest_ms for one in trusted)
    age_ms = seen.store.now_ms - newest_ms
    limit_ms = _STALE_INTERVALS * interval_ms(seen) + int(seen.policy.evidence.max_lag)
    if newest_ms < 0 or age_ms > limit_ms:
        age = "unknown" if newest_ms < 0 else span(age_ms)
        found = f"{'; '.join(lines)}; the newest sample is too old ({age}, at most {span(limit_ms)})"
        return Outcome(
            "failed", found, f"look at the target: {_target_query(min({one.job for one in trusted}))}"
        )
    return Outcome("ok", "; ".join(lines))


def _lines(seen: Gathered, trusted: list[Published]) -> Iterator[str]:
    """One sentence for each profile and job: its best metric."""
    every = interval_ms(seen)
    pace = f", a sample every {span(every)}" if every else ""
    for profile in seen.profiles:
        for job in sorted({one.job for one in trusted}):
            order = [signal.metric for signal in profile.signals]
            found = sorted(
                (one for one in trusted if one.job == job and one.metric in order),
                key=lambda one: order.index(one.metric),
            )
            if found:
                best = found[0]
                age = "unknown" if best.newest_ms < 0 else span(max(0, seen.store.now_ms - best.newest_ms))
                yield (
                    f"{profile.name}{_variants(seen, profile)}: {best.series} series of {best.metric} from job {job_name(job)}, newest {age} old{pace}"
                )


def _variants(seen: Gathered, profile: Profile) -> str:
    """What kinds of it there are, by the labels that its series carry."""
    rows = [row for one in seen.store.rows if one.profile.name == profile.name for row in one.rows]
    found = [
        variant.name
        for variant in profile.variants
        if any(row.get(variant.label) and re.fullmatch(variant.value, row[variant.label]) for row in rows)
    ]
    return f" ({', '.join(found)})" if found else ""


def interval_ms(seen: Gathered) -> int:
    """The longest measured sample interval of a live signal, 0 where none is known."""
    sources = seen.snapshot.telemetry.sources if seen.snapshot else ()
    return max((int(source.interval_ms) for source in sources), default=0)


def is_ours(name: str) -> bool:
    """Whether a job or monitor is this service's own: its name has the same word in it."""
    return "gpu-autoscaler" in name


def matches(pattern: str, job: str) -> bool:
    """Whether a scrape job is pinned by the policy's pattern, which the store anchors at both ends."""
    return re.fullmatch(pattern, job) is not None


def _nothing(seen: Gathered) -> Outcome:
    """The probable cause, the nearest one first."""
    store = seen.store
    exporters = [
        target for target in store.targets if EXPORTER_WORDS.search(target.job) and not is_ours(target.job)
    ]
    known = ", ".join(profile.name for profile in seen.profiles)
    none = f"no series of {'profile ' + known if len(seen.profiles) == 1 else f'any of {len(seen.profiles)} profiles'}"
    down = [target for target in exporters if target.down]
    if down and not any(target.up for target in down):
        counts = ", ".join(f"{target.job} {target.down} of {target.down + target.up}" for target in down)
        return Outcome("failed", f"{none}: GPU exporters are down: {counts}", _target_query(down[0].job))
    if store.foreign:
        names = some(f"{name} ({count})" for name, count in store.foreign.items())
        found = f"{none}, but metrics that look like a GPU exporter's: {names}"
        return Outcome("failed", found, _profile_fix(seen.profiles))
    if not store.targets:
        found = f"{none}, and no `up` of any target: the store is empty, or shows us nothing"
        return Outcome(
            "failed",
            found,
            "AUTOSCALER_PROMETHEUS_HEADERS=X-Scope-OrgID=<tenant>, or an account that may see all namespaces' series",
        )
    if exporters:
        jobs = some(f"{target.job} ({target.up} up)" for target in exporters)
        found = f"{none}, though {jobs} looks like a GPU exporter's job"
        return Outcome(
            "failed",
            found,
            f"look at its page for the metrics it has: {_target_query(exporters[0].job)}",
        )
    return Outcome(
        "failed",
        f"{none}: {_target_words(store)}, none of them a GPU exporter's",
        "let the store scrape the GPU exporter, e.g. a ServiceMonitor for nvidia-dcgm-exporter (its metrics: port 9400)",
    )


def _target_words(store: StoreFacts) -> str:
    up, down = sum(target.up for target in store.targets), sum(target.down for target in store.targets)
    return f"{up} targets of {len(store.targets)} jobs are up, {down} down"


def _target_query(job: str) -> str:
    return f'up{{job="{job}"}}, and the store\'s page /targets for the error'


def _profile_fix(profiles: tuple[Profile, ...]) -> str:
    example = "generic" if any(profile.name == "generic" for profile in profiles) else profiles[0].name
    return (
        f"a profile for it, made from a copy of {example} (metric, full: 1 or 100, owners, device), "
        "in AUTOSCALER_PROFILES_DIR=<folder>"
    )
