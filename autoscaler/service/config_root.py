"""Where the shipped configuration lies: inside the installed package, or beside it in the repository."""

from pathlib import Path

import autoscaler


def shipped_config() -> Path:
    """The folder with ``policy``, ``profiles`` and ``scenarios``."""
    package = Path(autoscaler.__file__).parent
    installed = package / "_config"
    return installed if installed.is_dir() else package.parent / "config"
