"""``python -m autoscaler.cli``: the command without its console script."""

import sys

from autoscaler.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
