"""`python -m tests.corrupted [--worlds N] [--first SEED] [--show]`: the figures as JSON, exit code 1 when they miss."""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from corrupted.campaign import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="every harmful and every missed world")
    asked = parser.parse_args()
    began_s = time.monotonic()
    figures = asyncio.run(run(range(asked.first, asked.first + asked.worlds)))
    report = figures.report() | {"seconds": round(time.monotonic() - began_s, 1)}
    if asked.show:
        report |= {"harmed": figures.harmed, "missed": figures.missed}
    sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    sys.exit(0 if figures.holds else 1)


if __name__ == "__main__":
    main()
