"""Which Jobs may run fewer pods at once, and who agreed to it.

The Job controller chooses which pods go (the youngest that are ready) and looks at no deletion cost, so only a Job whose
pods are all idle is given fewer. Sources: batch/v1 JobSpec; `manageJob` and `activePodsForRemoval` of
pkg/controller/job/job_controller.go.
"""

from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.model.cluster import Workload


def opted_in(workload: Workload) -> bool:
    """Whether the Job itself states a floor of pods; one of its namespace was written for servers and is no consent here.

    "0" speaks of being stopped as a whole, which Kueue can do.
    """
    stated = (carried.get(MIN_REPLICAS, "0") for carried in (workload.annotations, workload.labels))
    return any(text.strip() != "0" for text in stated)


def fixed_parallelism(workload: Workload) -> str:
    """Why fewer pods at once would lose work or free nothing, in words; empty where neither is so."""
    if workload.suspended:
        return "the Job is suspended: it holds nothing"
    if workload.indexed:
        return "completion mode Indexed: a pod that goes takes the progress of its index along"
    if workload.completions < 0 and workload.succeeded_pods > 0:
        return "a pod of the work queue has succeeded: its pods run to their end, whatever the parallelism"
    return ""
