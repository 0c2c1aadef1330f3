"""`gpu-autoscaler`, ended as by kill -9 at one of its changing requests.

Started as a script with `DIE_AT=SITE:before|after:N` in its environment: the N-th time that site is passed. Its arguments are
those of the command; without any it is `run`.
"""

import os
import signal
import sys
from typing import Literal

from autoscaler.act import writer
from autoscaler.act.contract import Site
from autoscaler.cli import main


class Death:
    """A probe that ends the process at its moment."""

    def __init__(self, site: Site, when: str, count: int) -> None:
        self._at = (site, when)
        self._left = count

    def __call__(self, site: Site, when: Literal["before", "after"]) -> None:
        if (site, when) == self._at:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    site, when, count = os.environ.pop("DIE_AT").split(":")
    writer.PROBE = Death(Site(site), when, int(count))
    sys.exit(main(sys.argv[1:] or ["run"]))
