"""The command that examines the surroundings: what decisions rest on, and what would mend it."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from autoscaler.cli.options import FormOption, PolicyOption, policy_of, run_once, settings_of
from autoscaler.cli.terminal import progress, screen_of_stdout, write_out
from autoscaler.service import exit_codes
from autoscaler.service.doctor.checks import examine
from autoscaler.service.doctor.gathering import gather
from autoscaler.service.exposition import judge_files
from autoscaler.service.faults import ConfigError
from autoscaler.ui.doctor_views import doctor_view
from autoscaler.ui.exposition_views import exposition_view


def doctor(
    *,
    exposition: Annotated[
        Path | None,
        Parameter(
            allow_leading_hyphen=True,
            help="an exporter's page (- for stdin): no cluster is asked, it is shown what would be made of it",
        ),
    ] = None,
    objects: Annotated[
        Path | None,
        Parameter(
            allow_leading_hyphen=True,
            help="with --exposition: Kubernetes objects, as kubectl get pods,nodes,resourceclaims,resourceslices -A -o json prints them",
        ),
    ] = None,
    policy: PolicyOption = None,
    output: FormOption = "table",
) -> int:
    """Twelve checks of the cluster, the metrics store and our rights, each with what mends it. Exit code 1 when one failed."""
    settings = settings_of(policy)
    in_force = policy_of(settings, os.environ)
    screen = screen_of_stdout(os.environ)
    if exposition is not None:
        report = run_once(settings, judge_files(exposition, objects, settings, in_force))
        write_out(exposition_view(report, form=output, screen=screen))
        return exit_codes.OK
    if objects is not None:
        raise ConfigError("doctor takes --objects only together with --exposition")
    with progress() as show:
        seen = run_once(settings, gather(settings, os.environ, in_force, show=show))
        show("judging")
        examination = examine(seen)
    write_out(doctor_view(examination, form=output, screen=screen))
    return exit_codes.FAILED if examination.failed else exit_codes.OK
