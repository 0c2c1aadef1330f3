import pytest

from autoscaler.act.protection import Found
from autoscaler.cli import main
from autoscaler.cli.protecting import _only, _value
from autoscaler.model.cluster import WorkloadRef
from autoscaler.service import exit_codes
from autoscaler.service.faults import ConfigError, WorkloadNotFoundError

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
WEB = Found(WorkloadRef("apps", "Deployment", "team", "web"), "1")
NIGHTLY = Found(WorkloadRef("batch", "CronJob", "team", "web"), "2")


def test_a_span_becomes_a_moment_and_none_is_for_good() -> None:
    assert _value(4 * HOUR_MS, now_ms=NOW_MS) == "2027-01-15T12:00:00+00:00"
    assert _value(0, now_ms=NOW_MS) == "true"


def test_a_span_beyond_all_dates_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer than dates reach"):
        _value(2**53, now_ms=NOW_MS)


def test_a_name_of_several_kinds_needs_the_kind() -> None:
    assert _only((WEB,), "", "team/web") == WEB
    assert _only((WEB, NIGHTLY), "cronjob", "team/web") == NIGHTLY
    with pytest.raises(ConfigError, match="team/web is Deployment, CronJob: say --kind"):
        _only((WEB, NIGHTLY), "", "team/web")
    with pytest.raises(WorkloadNotFoundError, match="no StatefulSet team/web"):
        _only((WEB, NIGHTLY), "StatefulSet", "team/web")
    with pytest.raises(WorkloadNotFoundError, match="kubectl annotate it with"):
        _only((), "", "team/web")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["web"], "protect takes NAMESPACE/NAME"),
        (["team/web", "--for", "soon"], "--for: not a duration"),
        (["team/web", "--for", "0s"], "--for must be over 0s"),
        (["team/web", "--off", "--for", "1h"], "--off takes neither --for nor --because"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protect", *arguments]) == exit_codes.USAGE
    assert told in capsys.readouterr().err
