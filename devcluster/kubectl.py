"""kubectl as a person would use it: the owner's hand in tests."""

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.errors import KubectlError

_APPLY_TIMEOUT_S = 20.0
_RETRY_INTERVAL_S = 0.2

NOT_YET = (
    "error looking up service account",
    "status unknown for quota",
    "no PriorityClass with name",
    "no matches for kind",
    "because it is being terminated",
)
"""Refusals that only say that the control plane has not caught up with what was just created."""


@dataclass(frozen=True)
class Kubectl:
    """The pinned kubectl under one kubeconfig."""

    binary: Path
    kubeconfig: Path
    cache_dir: Path

    async def run(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints; an error exit raises with its message."""
        process = await asyncio.create_subprocess_exec(
            self.binary,
            f"--cache-dir={self.cache_dir}",
            *arguments,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate(None if stdin is None else stdin.encode())
        if process.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {errors.decode().strip()}")
        return output.decode()

    async def apply(self, objects: Iterable[Mapping[str, Any]], *, server_side: bool = False) -> None:
        """Apply manifests in their order, again while the control plane has not caught up with the first of them."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        arguments = ["apply", "-f", "-", *(["--server-side"] if server_side else [])]
        deadline_s = time.monotonic() + _APPLY_TIMEOUT_S
        while True:
            try:
                await self.run(*arguments, stdin=text)
            except KubectlError as error:
                if time.monotonic() > deadline_s or not any(phrase in str(error) for phrase in NOT_YET):
                    raise
                await asyncio.sleep(_RETRY_INTERVAL_S)
            else:
                return
