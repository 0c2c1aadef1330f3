"""D8: is the exporter's monitor one that a Prometheus takes; a label that is missing there leaves everything silent."""

from collections.abc import Mapping, Sequence

from autoscaler.model.selectors import LabelSelector
from autoscaler.service.doctor.gathered import Gathered, Instance, Labels, Monitor
from autoscaler.service.doctor.outcome import Outcome, skipped, some
from autoscaler.service.doctor.store_checks import EXPORTER_WORDS, is_ours


def exporter_monitors(monitors: Sequence[Monitor]) -> tuple[Monitor, ...]:
    """Those that by their words are a GPU exporter's."""
    return tuple(
        monitor for monitor in monitors if EXPORTER_WORDS.search(monitor.about) and not is_ours(monitor.name)
    )


def check_monitors(seen: Gathered) -> Outcome:
    """D8: every exporter's monitor is selected by some Prometheus."""
    facts = seen.server.monitors
    if seen.server.fault:
        return skipped(f"the API server could not be asked: {seen.server.fault}")
    if facts.absent:
        return skipped("the cluster has no Prometheus operator (monitoring.coreos.com)")
    if facts.fault:
        return skipped(
            f"its monitors could not be read ({facts.fault}): run it as somebody who may list servicemonitors"
        )
    found = exporter_monitors(facts.monitors)
    if not found:
        words = f"none of {len(facts.monitors)} monitors looks like a GPU exporter's"
        fix = "" if seen.store.published else "a ServiceMonitor for the exporter's Service"
        return Outcome("ok" if seen.store.published else "warning", words, fix)
    if not facts.instances:
        words = f"{some(_name(one) for one in found)}, and no Prometheus object that could select it"
        return Outcome("ok" if seen.store.published else "warning", words)
    rows = seen.snapshot.namespaces if seen.snapshot else ()
    namespaces: Mapping[str, Labels] = {row.name: row.labels for row in rows}
    lost = [one for one in found if not any(_takes(i, one, namespaces) for i in facts.instances)]
    if not lost:
        return Outcome("ok", f"{some(_name(one) for one in found)} selected")
    words = (
        f"no Prometheus ({some(_at(i) for i in facts.instances)}) selects {some(_name(one) for one in lost)}"
    )
    return Outcome("failed", words, _fix(lost[0], facts.instances, namespaces))


def _takes(instance: Instance, monitor: Monitor, namespaces: Mapping[str, Labels]) -> bool:
    selection = instance.selections[monitor.kind]
    if selection.monitors is None or not selection.monitors.selects(monitor.labels):
        return False
    return _reaches(instance, monitor, namespaces)


def _reaches(instance: Instance, monitor: Monitor, namespaces: Mapping[str, Labels]) -> bool:
    """Whether it looks into the monitor's namespace; labels of a namespace that is not known are none."""
    wanted = instance.selections[monitor.kind].namespaces
    if wanted is None:
        return instance.namespace == monitor.namespace
    return wanted.selects(namespaces.get(monitor.namespace, {}))


def _fix(monitor: Monitor, instances: Sequence[Instance], namespaces: Mapping[str, Labels]) -> str:
    near = [one for one in instances if _reaches(one, monitor, namespaces)]
    for instance in near:
        wanted = instance.selections[monitor.kind].monitors
        if wanted is not None and wanted.match_labels:
            labels = _as_arguments(wanted)
            return f"kubectl -n {monitor.namespace} label {monitor.kind.lower()} {monitor.name} {labels} --overwrite"
    field = "serviceMonitor" if monitor.kind == "ServiceMonitor" else "podMonitor"
    instance = (near or list(instances))[0]
    if near:
        return f"Prometheus {_at(instance)}: spec.{field}Selector: {{}}"
    selector = instance.selections[monitor.kind].namespaces
    if selector is not None and selector.match_labels:
        return f"kubectl label namespace {monitor.namespace} {_as_arguments(selector)} --overwrite"
    return f"Prometheus {_at(instance)}: spec.{field}NamespaceSelector: {{}}"


def _as_arguments(selector: LabelSelector) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(selector.match_labels.items()))


def _name(monitor: Monitor) -> str:
    return f"{monitor.kind} {monitor.namespace}/{monitor.name}"


def _at(instance: Instance) -> str:
    return f"{instance.namespace}/{instance.name}"
