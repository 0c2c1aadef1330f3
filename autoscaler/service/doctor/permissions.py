"""D6: every right that the mode in force needs, as the API server grants it to whoever runs this."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from autoscaler.service.doctor.gathered import Gathered, Right
from autoscaler.service.doctor.outcome import Outcome, skipped, some


def check_permissions(seen: Gathered) -> Outcome:
    """D6: rights, named with the line of the manifest that carries each."""
    server = seen.server
    if server.fault:
        return Outcome(
            "failed",
            f"the API server could not be asked: {server.fault}",
            "AUTOSCALER_KUBECONFIG=<file>, AUTOSCALER_CONTEXT=<context>",
        )
    if server.reviews_fault:
        return skipped(f"the server does not review rights for us: {server.reviews_fault}")
    needed = [review for review in server.reviews if _exists(seen, review.right)]
    missing = [review for review in needed if not review.allowed]
    asked = f"asked as {server.user}" if server.user else "asked as whoever the credentials are"
    modes = seen.policy.modes.in_words
    if not missing:
        return Outcome("ok", f"all {len(needed)} rights for mode {modes} ({asked})")
    rules = _rules([review.right for review in missing])
    words = some((rule.words() for rule in rules), shown=6)
    found = f"{len(missing)} of {len(needed)} rights for mode {modes} are missing ({asked}): {words}"
    return Outcome("failed", found, "\n".join(rule.line() for rule in rules))


def _exists(seen: Gathered, right: Right) -> bool:
    """Whether the server has the kind: nobody needs a right on what is not there."""
    rows = seen.snapshot.access if seen.snapshot else ()
    return not any(row.kind == right.kind and row.state == "absent" for row in rows)


class _Rule(msgspec.Struct, frozen=True, order=True):
    """One rule of a role."""

    role: str
    group: str
    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    names: tuple[str, ...]
    namespace: str

    def words(self) -> str:
        """Verbs, resources and namespace in words."""
        group = f".{self.group}" if self.group else ""
        what = ", ".join(f"{resource}{group}" for resource in self.resources)
        names = f" ({some(self.names, shown=2)})" if self.names else ""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{'/'.join(self.verbs)} {what}{names} {where}"

    def line(self) -> str:
        """As it stands in a manifest, with the role that it belongs to."""
        group = self.group or '""'
        resources, verbs = ", ".join(self.resources), ", ".join(self.verbs)
        names = f", resourceNames: [{', '.join(self.names)}]" if self.names else ""
        return f"- {{apiGroups: [{group}], resources: [{resources}]{names}, verbs: [{verbs}]}}  # {self.role}"


def _rules(missing: Iterable[Right]) -> list[_Rule]:
    """As few rules as say the same: verbs of one object together, then objects, then resources of the same verbs."""
    verbs: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for right in missing:
        verbs[right.role, right.group, right.namespace, right.resource, right.name].append(right.verb)
    names: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (*what, name), found in verbs.items():
        names[tuple(what), tuple(sorted(found))].append(name)
    resources: defaultdict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
    for ((*where, resource), wanted), named in names.items():
        resources[tuple(where), wanted, tuple(sorted(filter(None, named)))].append(resource)
    return sorted(
        _Rule(
            role=role,
            group=group,
            verbs=wanted,
            resources=tuple(sorted(found)),
            names=named,
            namespace=namespace,
        )
        for ((role, group, namespace), wanted, named), found in resources.items()
    )
