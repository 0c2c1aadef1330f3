"""D4: is a device counted once; two exporters, jobs or Prometheis that show it give two figures of one board."""

from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.observe.profiles import Profile
from autoscaler.observe.series import normal_device
from autoscaler.service.doctor.gathered import Gathered, Labels, Rows
from autoscaler.service.doctor.outcome import Outcome, job_name, skipped, some
from autoscaler.service.doctor.store_checks import matches

_REPLICA: Final = ("prometheus_replica", "replica", "prometheus")
"""What the members of a highly available pair call themselves."""


def check_devices(seen: Gathered) -> Outcome:
    """D4: no device with two publishers."""
    if not seen.store.rows:
        return skipped("no GPU series (D2)")
    publishers: dict[str, set[tuple[str, str, str, str]]] = {}
    pattern = seen.policy.evidence.source_job
    for rows in seen.store.rows:
        for device, row in devices_of(rows):
            if not pattern or matches(pattern, row.get("job", "")):
                who = (rows.profile.name, row.get("job", ""), row.get("instance", ""), _replica(row))
                publishers.setdefault(device, set()).add(who)
    if not publishers:
        return skipped("no series names a device")
    doubled = {device: who for device, who in publishers.items() if len(who) > 1}
    if not doubled:
        return Outcome("ok", f"{len(publishers)} devices, each from one place")
    device = min(doubled)
    found = f"{len(doubled)} of {len(publishers)} devices are counted more than once, e.g. {device}: "
    return Outcome("warning", found + "; ".join(_named(doubled[device])), _fix(doubled[device]))


def devices_of(rows: Rows) -> Iterator[tuple[str, Labels]]:
    """The series that name a device, with the device's name in the form in which names are compared."""
    for row in rows.rows:
        device = _device(rows.profile, row)
        if device:
            yield device, row


def _device(profile: Profile, row: Labels) -> str:
    for key in profile.device_keys:
        parts = [row.get(label, "") for label in key]
        if all(parts):
            slices = [row[label] for label in profile.slices if row.get(label)]
            return "/".join([normal_device("+".join(parts)), *slices])
    return ""


def _replica(row: Labels) -> str:
    return next((row[label] for label in _REPLICA if row.get(label)), "")


def _named(who: Iterable[tuple[str, str, str, str]]) -> list[str]:
    return [
        f"{profile} from job {job_name(job)} at {instance or '?'}" + (f" by {replica}" if replica else "")
        for profile, job, instance, replica in sorted(who)[:3]
    ]


def _fix(who: set[tuple[str, str, str, str]]) -> str:
    jobs = sorted({job for _, job, _, _ in who})
    if len(jobs) > 1:
        return f"AUTOSCALER_EVIDENCE_SOURCE_JOB={jobs[0]} (or remove one of the jobs {some(jobs)})"
    if len({replica for _, _, _, replica in who}) > 1:
        return "query through what removes duplicates (Thanos: --query.replica-label=prometheus_replica)"
    if len({instance for _, _, instance, _ in who}) > 1:
        return "two targets of one job publish it: two exporters run on the node, or a monitor selects two Services of one exporter"
    profiles = sorted({profile for profile, _, _, _ in who})
    return f"AUTOSCALER_EVIDENCE_PROFILES={profiles[0]} (one of {some(profiles)})"
