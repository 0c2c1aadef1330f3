"""What the streams can do, and words on stderr while a long read runs."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from autoscaler.ui.escape import printable
from autoscaler.ui.views import Screen

_PIPED_COLUMNS = 120


def screen_of_stdout(environ: Mapping[str, str]) -> Screen:
    """Width and colour of stdout: colour only for a terminal whose owner did not say NO_COLOR."""
    stated = environ.get("COLUMNS", "")
    columns = int(stated) if stated.isdecimal() and 0 < int(stated) < 10_000 else 0
    if not sys.stdout.isatty():
        return Screen(columns=columns or _PIPED_COLUMNS)
    dumb = environ.get("TERM", "") == "dumb"
    return Screen(columns=columns or _width(), color=not environ.get("NO_COLOR") and not dumb)


def say(message: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"gpu-autoscaler: {printable(message)}\n")
    sys.stderr.flush()


def note(line: str) -> None:
    """A line on stderr that belongs to a question."""
    sys.stderr.write(one_line(line))
    sys.stderr.flush()


def one_line(text: str) -> str:
    """Foreign text as one line."""
    return f"{printable(text)}\n"


def confirmed(question: str) -> bool:
    """Whether the person at the terminal says yes; anything else, the end of input too, is a no."""
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def write_out(text: str) -> None:
    """Data on stdout; raises BrokenPipeError when nobody reads it any more."""
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows what is being read, on stderr and only if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with console.status(Text("reading")) as status:
        yield lambda words: status.update(Text(printable(words)))


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return _PIPED_COLUMNS
