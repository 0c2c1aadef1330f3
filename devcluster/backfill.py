"""A Prometheus whose history is written down instead of waited for.

Series become an OpenMetrics text, `promtool` makes blocks of it, and a Prometheus of its own serves them; queries name
their time. What no text can say are staleness markers: a series that ends is seen until the store's look-back is over.
"""

import asyncio
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import aiohttp

from devcluster.binaries import Binaries, ensure_binaries
from devcluster.errors import DevclusterError
from devcluster.ports import LOOPBACK, free_ports
from devcluster.processes import Command, Component, fail_if_dead

BLOCK_MS = 2 * 3_600_000
"""Blocks begin at multiples of this: samples within one are read once, each further block reads the text again."""
_READY_TIMEOUT_S = 60.0
_POLL_INTERVAL_S = 0.05
_STOP_GRACE_S = 10.0
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True)
class Series:
    """One series; samples are (ms since the epoch, value) in the order of time, no two at one time."""

    metric: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[int, float]]


def openmetrics(series: Iterable[Series]) -> Iterator[str]:
    """The text of the series in pieces, each of whole lines, the end mark last; empty labels are left out.

    Raises `DevclusterError` for samples out of order: promtool drops them without a word.
    """
    for one in series:
        if any(later[0] <= earlier[0] for earlier, later in pairwise(one.samples)):
            raise DevclusterError(f"the samples of {one.metric} are not in the order of time")
        labels = ",".join(
            f'{name}="{value.translate(_ESCAPES)}"' for name, value in sorted(one.labels.items()) if value
        )
        head = f"{one.metric}{{{labels}}}" if labels else one.metric
        yield "".join(f"{head} {_number(value)} {at_ms / 1000:.3f}\n" for at_ms, value in one.samples)
    yield "# EOF\n"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def write_blocks(series: Iterable[Series], folder: Path, *, binaries: Binaries) -> None:
    """Make TSDB blocks of the series in a folder; raises `DevclusterError` with promtool's words."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder.with_suffix(".om")
    try:
        with text.open("w") as sink:
            sink.writelines(openmetrics(series))
        made = subprocess.run(
            [binaries.path("promtool"), "tsdb", "create-blocks-from", "openmetrics", "--quiet", text, folder],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        text.unlink(missing_ok=True)
    if made.returncode != 0:
        raise DevclusterError(f"promtool made no blocks: {(made.stderr or made.stdout).strip()[-2000:]}")


@asynccontextmanager
async def backfilled_prometheus(
    series: Iterable[Series], *, run_dir: Path | None = None
) -> AsyncIterator[str]:
    """The base URL of a Prometheus on a free port that has these series and scrapes nothing.

    The run folder is made in `run_dir` (else where temporary files are) and is gone afterwards.
    """
    binaries = await asyncio.to_thread(ensure_binaries)
    work = Path(tempfile.mkdtemp(prefix="gpu-autoscaler-backfill-", dir=run_dir))
    try:
        await asyncio.to_thread(write_blocks, series, work / "data", binaries=binaries)
        async with _serving(work, binaries) as url:
            yield url
    finally:
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)


@asynccontextmanager
async def _serving(work: Path, binaries: Binaries) -> AsyncIterator[str]:
    config = work / "prometheus.yaml"
    config.write_text("global: {}\n")
    (port,) = free_ports(1)
    arguments: list[str | Path] = [
        binaries.path("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={work / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--storage.tsdb.retention.time=100y",
        "--log.level=warn",
    ]
    command = Command(name="prometheus", arguments=arguments, log_path=work / "prometheus.log")
    component = Component(command)
    component.start()
    url = f"http://{LOOPBACK}:{port}"
    try:
        await _until_ready(component, url)
        yield url
    finally:
        await component.stop(_STOP_GRACE_S)


async def _until_ready(component: Component, url: str) -> None:
    deadline_s = time.monotonic() + _READY_TIMEOUT_S
    async with aiohttp.ClientSession() as session:
        while not await _is_ready(session, f"{url}/-/ready"):
            fail_if_dead([component])
            if time.monotonic() > deadline_s:
                raise DevclusterError(f"prometheus was not ready in {_READY_TIMEOUT_S:g} s")
            await asyncio.sleep(_POLL_INTERVAL_S)


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, OSError):
        return False
