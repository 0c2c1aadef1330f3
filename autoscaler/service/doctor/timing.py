"""D9 and D10: do the clocks agree, and is the Lease in good hands."""

from typing import Final

from autoscaler.service.doctor.gathered import Gathered
from autoscaler.service.doctor.outcome import Outcome, skipped, span

_OWN_MS: Final = 30_000
"""This machine's clock decides nothing; a larger difference makes its logs hard to read beside others."""
_RESOLUTION_MS: Final = 1_500
"""An answer's Date has whole seconds, and travels."""


def check_clocks(seen: Gathered) -> Outcome:
    """D9: API server, metrics store, this machine."""
    server, store, limit_ms = (
        seen.server.minus_own_ms,
        seen.store.minus_own_ms,
        int(seen.policy.evidence.max_skew),
    )
    if server is None and store is None:
        return skipped("neither the API server nor the metrics store tells its time")
    known = [
        (name, value)
        for name, value in (("API server", server), ("metrics store", store))
        if value is not None
    ]
    found = "; ".join(f"{name} minus this machine: {_signed(value)}" for name, value in known)
    if server is not None and store is not None and abs(store - server) > limit_ms + _RESOLUTION_MS:
        found = (
            f"metrics store minus API server: {_signed(store - server)}, allowed {span(limit_ms)} ({found})"
        )
        return Outcome("failed", found, "let both keep time by NTP (chronyc tracking on their nodes)")
    if any(abs(value) > _OWN_MS for _, value in known):
        return Outcome("warning", found, "let this machine keep time by NTP: only its logs suffer")
    return Outcome("ok", found)


def _signed(length_ms: int) -> str:
    return f"{length_ms / 1000:+.1f}s"


def check_lease(seen: Gathered) -> Outcome:
    """D10: who leads, and whether the Lease is renewed."""
    server, namespace = seen.server, seen.settings.namespace
    if server.fault:
        return skipped(f"the API server could not be asked: {server.fault}")
    if server.lease is None:
        return skipped(f"the Lease in namespace {namespace} could not be read: {server.lease_fault}")
    lease, where = server.lease, f"Lease {namespace}/gpu-autoscaler"
    start = f"kubectl -n {namespace} get pods,leases; AUTOSCALER_NAMESPACE=<namespace> if the service runs elsewhere"
    if not lease.exists:
        return Outcome("warning", f"no {where}: no service has ever led here", start)
    if not lease.holder:
        return Outcome("warning", f"{where} was given back, nobody leads now", start)
    if lease.renewed_ms < 0 or server.now_ms < 0:
        return Outcome("warning", f"{lease.holder} holds {where}; when it was renewed is not readable", start)
    age_ms = max(0, server.now_ms - lease.renewed_ms)
    found = f"{lease.holder} holds {where}, renewed {span(age_ms)} ago (lasts {span(lease.duration_ms)}), {lease.transitions} changes of leader"
    if age_ms > lease.duration_ms + _RESOLUTION_MS:
        return Outcome("failed", f"{found}: it has run out, nobody leads", start)
    return Outcome("ok", found)
