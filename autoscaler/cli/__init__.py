"""The command line: what a person or a script types. Data goes to stdout, everything else to stderr."""

from autoscaler.cli.commands import main

__all__ = ["main"]
