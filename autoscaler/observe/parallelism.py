"""Hints that a container's device count is part of the application.

Whoever starts `--tensor-parallel-size 4` fails on two boards. A hint too many only asks the owner for consent, so the
patterns are broad; the value itself is not read, since scripts compute with it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.kube.wire import Container

_LAYOUT: Final = (
    r"(?:tensor|pipeline|data|expert|context|sequence|model)(?:_model)?_parallel(?:ism)?(?:_size|_degree)?"
)
_LONG: Final = re.compile(
    rf"(?:.*_)?(?:{_LAYOUT}|(?:tp|pp|dp|ep|cp|sp)_(?:size|degree)"
    r"|(?:num|n)_?(?:gpus?|devices|processes|shards?)(?:_per_(?:node|worker|host))?"
    r"|gpu_count|gpus?(?:_per_(?:node|worker))?|ngpus?"
    r"|nproc(?:_per_node)?|(?:local_)?world_size|visible_devices|devices)"
)
_SHORT: Final = frozenset({"tp", "pp", "dp", "ep", "np"})
_SPLIT: Final = re.compile(r"[\s;&|'\"()]+")
_NO_COUNT: Final = frozenset({"", "all", "void", "none"})
_MAX_TEXT: Final = 65_536
_MAX_NAME: Final = 80


def parallelism_hints(container: Container) -> tuple[str, ...]:
    """Names of arguments and environment variables that carry a device count or a parallel layout, sorted."""
    names = {
        variable.name for variable in container.env or () if _is_environment(variable.name, variable.value)
    }
    names.update(_arguments([*(container.command or ()), *(container.args or ())]))
    return tuple(sorted(names))


def _is_environment(name: str, value: str) -> bool:
    key = _normal(name)
    if key.endswith("visible_devices"):
        return value.strip().lower() not in _NO_COUNT
    return _is_layout(key)


def _arguments(texts: Iterable[str]) -> Iterator[str]:
    """Flags (`--tp=2`, `-tp 2`) and assignments (`NUM_GPUS=4`, `trainer.devices=4`), also inside shell lines."""
    for text in texts:
        for token in _SPLIT.split(text[:_MAX_TEXT]):
            name, assigned, _ = token.partition("=")
            dashed = name.startswith("-")
            if not (dashed or assigned):
                continue
            key = _normal(name)
            if _is_layout(key) or key in _SHORT:
                yield name


def _normal(name: str) -> str:
    return name.lstrip("-+").rpartition(".")[2].replace("-", "_").lower()


def _is_layout(key: str) -> bool:
    return len(key) <= _MAX_NAME and _LONG.fullmatch(key) is not None
