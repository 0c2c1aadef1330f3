"""The global pause: a ConfigMap that any operator may write, and that the service looks at before it acts."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import msgspec

from autoscaler.act.contract import Api
from autoscaler.act.shards import LABELS, decoder
from autoscaler.kube.errors import UNREADABLE, Conflict, KubeError, NotFound

NAME: Final = "gpu-autoscaler-control"
KEY: Final = "paused"
_TRIES: Final = 3
_WORDS: Final = 300
_MERGE: Final = "application/merge-patch+json"


class Pause(msgspec.Struct, frozen=True):
    """Who paused the service, when, and why."""

    by: str
    at: str
    because: str = ""

    def __str__(self) -> str:
        why = f": {self.because}" if self.because else ""
        return f"paused by {self.by or 'somebody'} at {self.at}{why}"[:_WORDS]


_pause_decoder = msgspec.json.Decoder(Pause)


async def read_control(api: Api, namespace: str) -> str:
    """Why the service is paused, empty when it is not. A pause that cannot be read is a pause."""
    try:
        item = await api.get_json(_path(namespace), None, decoder)
    except NotFound:
        return ""
    except KubeError as error:
        return f"whether it is paused cannot be read: {error}"
    text = (item.data or {}).get(KEY, "")
    if not text:
        return ""
    try:
        return str(_pause_decoder.decode(text))
    except UNREADABLE:
        return f"paused, in words that cannot be read: {text[:80]!r}"


async def pause(api: Api, namespace: str, *, by: str, because: str, now_ms: int) -> str:
    """Stops all acting; who paused first and why is kept. Returns what is in force; raises `KubeError`."""
    at = datetime.fromtimestamp(now_ms / 1000, tz=UTC).isoformat(timespec="seconds")
    text = msgspec.json.encode(Pause(by=by, at=at, because=because)).decode()
    await _set(api, namespace, lambda former: former or text)
    return await read_control(api, namespace)


async def resume(api: Api, namespace: str) -> bool:
    """Lets it go on, also after a pause that cannot be read; whether it was paused. Raises `KubeError`."""
    was_paused = bool(await read_control(api, namespace))
    if was_paused:
        await _set(api, namespace, lambda _: "")
    return was_paused


async def _set(api: Api, namespace: str, change: Callable[[str], str]) -> None:
    for attempt in range(_TRIES):
        try:
            await _set_once(api, namespace, change)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return


async def _set_once(api: Api, namespace: str, change: Callable[[str], str]) -> None:
    try:
        item = await api.get_json(_path(namespace), None, decoder)
    except NotFound:
        metadata = {"name": NAME, "namespace": namespace, "labels": LABELS}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: change("")}}
        await api.write("POST", _folder(namespace), body, decoder)
        return
    # On the version that was read, so that nobody's pause is written over; whatever else is there is kept.
    patch = {
        "metadata": {"resourceVersion": item.metadata.resource_version},
        "data": {KEY: change((item.data or {}).get(KEY, "")) or None},
    }
    await api.write("PATCH", _path(namespace), patch, decoder, content_type=_MERGE)


def _folder(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"


def _path(namespace: str) -> str:
    return f"{_folder(namespace)}/{NAME}"
