"""Hints that a container's device count is part of the application.

Whoever starts `--tensor-parallel-size 4` fails on two boards. A hint too many only asks the owner for consent, so the
patterns are broad; a stated count is a hint whatever it is, since scripts compute with it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from autoscaler.kube.wire import Container, environment
from autoscaler.model.shapes import layout_key

_LAYOUT: Final = (
    r"(?:tensor|pipeline|data|expert|context|sequence|model)(?:_model)?_para(?:llel(?:ism)?)?"
    r"(?:_(?:size|degree))?(?:_local)?"
)
_LONG: Final = re.compile(
    rf"(?:.*_)?(?:{_LAYOUT}|(?:tp|pp|dp|ep|cp|sp)_(?:size|degree)"
    r"|(?:num|n)_?(?:gpus?|devices|processes|shards?|nodes|machines|hosts)(?:_per_(?:node|worker|host))?"
    r"|(?:num|n)_(?:\w+_)?gpus?|gpu_count|gpus?(?:_per_(?:node|worker))?|ngpus?"
    r"|(?:gpu|device)_(?:ids?|indices|list)|tensor_split|split_mode|instance_groups?"
    r"|nproc(?:_per_node)?|(?:local_)?world_size|visible_devices|devices|master_addr|(?:node|machine|local)_rank)"
)
_SHORT: Final = frozenset({"tp", "pp", "dp", "ep", "np", "cp", "sp", "ts"})
_SHORT_VARIABLES: Final = frozenset({"tp", "pp", "dp", "rank"})
"""As variables of the environment, whole: `lora_rank` is no rank of a process."""
_STATED: Final = re.compile(
    r"(?<![\w./-])(?P<name>(?P<dashes>[-+]{0,2})[A-Za-z_][\w.-]*)(?P<assigned>[\\\"']*\s*[=:])?(?=(?P<rest>.{0,64}))",
    re.DOTALL,
)
"""A flag (`--tp 2`), an assignment (`NUM_GPUS=4`, `trainer.devices=4`) or a key (`"tp_size": 2`), also in shell lines."""
_COUNT: Final = re.compile(r"[\s=:\\\"'\[]*[\d$]")
_INDICES: Final = re.compile(r"[\s=:\\\"'\[]*\d+(?:\s*,\s*\d+)+")
_FEW: Final = re.compile(r"[\s=]*[1-9]\d?(?![\w.])")
_SHARDED: Final = re.compile(r"[\s=:\\\"']*(?:\w+_)?(?:ddp|fsdp|deepspeed|megatron)", re.IGNORECASE)
_LAUNCHERS: Final = frozenset({"mpirun", "mpiexec", "horovodrun", "torchrun", "accelerate", "deepspeed"})
_NO_COUNT: Final = frozenset({"", "all", "void", "none"})
_MAX_TEXT: Final = 65_536
_MAX_NAME: Final = 80


def parallelism_hints(container: Container) -> tuple[str, ...]:
    """Names of arguments and environment variables that carry a device count or a parallel layout, sorted.

    A variable whose value is a line of such arguments is named itself. Raises `msgspec.DecodeError` where the variables
    are unreadable.
    """
    names = {
        variable.name
        for variable in environment(container)
        if _is_environment(variable.name, variable.value) or next(_stated(variable.value), "")
    }
    words = [*(container.command or ()), *(container.args or ())]
    names.update(_stated("\n".join(word[:_MAX_TEXT] for word in words)))
    return tuple(sorted(names))


def _is_environment(name: str, value: str) -> bool:
    key = layout_key(name)
    if key.endswith("visible_devices"):
        return value.strip().lower() not in _NO_COUNT
    return _is_layout(key) or key in _SHORT_VARIABLES


def _stated(text: str) -> Iterator[str]:
    """What a text states a count or a layout by."""
    launched = False
    for found in _STATED.finditer(text[: 16 * _MAX_TEXT]):
        name, dashed, rest = found["name"], bool(found["dashes"]), found["rest"]
        key = layout_key(name)
        launched = launched or key in _LAUNCHERS
        if (key in {"device", "gpu"} and _INDICES.match(rest)) or (
            (dashed or found["assigned"]) and _is_stated(key, rest, launched=launched, name=name)
        ):
            yield name


def _is_stated(key: str, rest: str, *, launched: bool, name: str) -> bool:
    if key in _SHORT:
        return _COUNT.match(rest) is not None
    if name == "-n":
        return launched and _COUNT.match(rest) is not None
    if name == "-g":  # a count of boards; group ids are larger
        return _FEW.match(rest) is not None
    if key == "strategy":
        return _SHARDED.match(rest) is not None
    return _is_layout(key)


def _is_layout(key: str) -> bool:
    return len(key) <= _MAX_NAME and _names_a_layout(key)


@lru_cache(maxsize=4096)
def _names_a_layout(key: str) -> bool:
    return _LONG.fullmatch(key) is not None
