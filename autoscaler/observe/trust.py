"""Whose series are true: the scrape jobs that are believed, worked out from what publishes.

Pure: it knows answers, no store. Why it is decided by job is in docs/design/0002.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autoscaler.observe.profiles import Profile
from autoscaler.observe.queries import one_job

_MAX_JOBS: Final = 20
"""Scrape jobs that are named; whoever can publish can invent any number."""
_SHOWN_JOBS: Final = 5
_SHOWN_NAME: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Which scrape jobs are believed: `matchers` by profile (without series: none), and the profiles that are not."""

    jobs: tuple[str, ...]
    matchers: Mapping[str, str]
    untrusted: tuple[str, ...] = ()


def weigh(
    found: Mapping[str, frozenset[str]],
    profiles: Sequence[Profile],
    *,
    pinned: str,
    wanted: Collection[str],
    believed: str | None = None,
) -> Trust:
    """Believes the pinned jobs, else the only job over all profiles, else only profiles that state their own job.

    `found` has the jobs that publish each profile; `wanted` profiles are read even where nothing publishes them. `believed`
    is the only job of before: another one that takes its place must be pinned, since the true exporter may just be down.
    """
    jobs = tuple(sorted(frozenset().union(*found.values())))
    replaced = believed is not None and jobs not in ((), (believed,))
    if pinned or (len(jobs) <= 1 and not replaced):
        matcher = pinned or (one_job(jobs[0]) if jobs else "")
        matchers = {name: matcher for name in found if found[name] or name in wanted}
        return Trust(jobs=jobs[:_MAX_JOBS], matchers=matchers)
    # A profile that states its own job is pinned by that, whatever else is published.
    stated = {profile.name for profile in profiles if "job" in profile.match}
    return Trust(
        jobs=jobs[:_MAX_JOBS],
        matchers={name: "" for name in found if name in (stated if found[name] else wanted)},
        untrusted=tuple(
            f"{name}: {', '.join(_named(found[name]))}"
            for name in sorted(found)
            if found[name] and name not in stated
        ),
    )


def _named(jobs: frozenset[str]) -> list[str]:
    """Scrape jobs for people, not more than fit into a sentence."""
    listed = [name[:_SHOWN_NAME] or "(no job label)" for name in sorted(jobs)]
    more = len(listed) - _SHOWN_JOBS
    return [*listed[:_SHOWN_JOBS], f"{more} more"] if more > 0 else listed
