"""`python -m devcluster`: build the binaries, bring up a scenario until Ctrl-C, or demonstrate the service on one."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from devcluster.binaries import ensure_binaries
from devcluster.cluster import Cluster, running_cluster
from devcluster.demo.run import run_demo
from devcluster.errors import DevclusterError
from devcluster.processes import fail_if_dead
from devcluster.scenario import Scenario, load_scenario

_ALIVE_CHECK_INTERVAL_S = 1.0
_DEMO_SCENARIO = Path(__file__).resolve().parents[1] / "config/scenarios/ml-workloads.yaml"


def main() -> int:
    """Run a command; 0 is success, 1 a failure that was told on stderr."""
    arguments = _parse()
    try:
        scenario = load_scenario(arguments.scenario) if arguments.command == "up" else None
        binaries = ensure_binaries()
        if arguments.command == "build":
            print(binaries.control_plane_dir / "bin", binaries.prometheus_dir / "bin", sep="\n")
        elif arguments.command == "demo":
            return run_demo(arguments.scenario, once=arguments.once)
        elif scenario is not None:
            asyncio.run(_up(scenario, arguments.run_dir, keep=arguments.keep))
    except DevclusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("devcluster: stopped", file=sys.stderr)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the binaries into the user cache, once per set of pins")
    up = commands.add_parser("up", help="run a scenario until Ctrl-C")
    up.add_argument("--scenario", type=Path, required=True, help="scenario file (YAML)")
    up.add_argument("--run-dir", type=Path, help="folder for logs and state; new or empty")
    up.add_argument("--keep", action="store_true", help="keep the run folder after a clean end")
    demo = commands.add_parser(
        "demo", help="a day with the service on a scenario, live; --once asserts every scene"
    )
    demo.add_argument(
        "--scenario", type=Path, default=_DEMO_SCENARIO, help="scenario file with its .expected.yaml"
    )
    demo.add_argument("--once", action="store_true", help="end at the expected plan, with one line of JSON")
    return parser.parse_args()


async def _up(scenario: Scenario, run_dir: Path | None, *, keep: bool) -> None:
    me = asyncio.current_task()
    if me is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    async with running_cluster(run_dir=run_dir, keep_run_dir=keep) as cluster:
        await cluster.play(scenario)
        _show(cluster, scenario)
        while True:
            fail_if_dead(cluster.components())
            await asyncio.sleep(_ALIVE_CHECK_INTERVAL_S)


def _show(cluster: Cluster, scenario: Scenario) -> None:
    rows = {
        "scenario": scenario.name,
        "kubeconfig": cluster.admin_kubeconfig,
        "API server": cluster.server_url,
        "Prometheus": cluster.prometheus_url,
        "GPU exporter": cluster.exporter.url,
        "audit log": cluster.audit_log,
        "run folder": cluster.run_dir,
        "kubectl": cluster.binaries.path("kubectl"),
    }
    for name, value in rows.items():
        print(f"{name + ':':14}{value}")
    print("Ctrl-C stops everything.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
