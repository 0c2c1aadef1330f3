"""No corruption of the evidence makes anything be taken from who is busy, and clean evidence still finds the idle.

A thousand worlds and their corrupted twins, through the real reader, PromQL and Prometheus to the plan; a sample of them,
chosen by the commit, outside of the slow run.  A world that fails is drawn again by its seed:
`python -m tests.corrupted --worlds 1 --first SEED --show`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.corrupted.campaign import run

pytestmark = [pytest.mark.cluster]

WORLDS = 1_000
SAMPLE = 120


def seeds_of_this_run() -> list[int]:
    """All worlds in the slow run, else a sample that is the same for everybody who tests this commit."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "slow":
        return list(range(WORLDS))
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return sorted(Random(found.stdout.strip()).sample(range(WORLDS), SAMPLE))


@pytest.mark.timeout(5400)
async def test_no_corruption_takes_anything_from_who_is_busy(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = seeds_of_this_run()
    figures = await run(seeds)
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps({'corrupted_worlds': figures.report()})}\n")

    assert len(seeds) == figures.worlds
    assert figures.harmed == []
    assert figures.clean.share >= 0.95, figures.missed
    assert figures.clean.acted > 0
