from build import Spec, boards, cluster, judge, resize

from autoscaler.decide.advice import patch_of
from autoscaler.decide.proposal import Proposal
from autoscaler.model.reasons import Reason


def test_a_cron_jobs_patch_is_in_its_job_template() -> None:
    _, judged = judge(cluster(Spec(kind="CronJob", group="batch", gpus=2, seen=(boards(0.5, 0.0),))))

    assert patch_of(judged, resize(2, 1)).startswith('{"spec":{"jobTemplate":{"spec":{"template":')


def test_an_eviction_is_no_patch() -> None:
    _, judged = judge(cluster(Spec()))

    assert patch_of(judged, Proposal("make-room", Reason.MADE_ROOM, "evict", 1, 0, 1, "")) == ""
