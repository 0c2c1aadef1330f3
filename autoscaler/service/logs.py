"""Structured logs on stderr: one JSON object a line (or a console form), with ``ts``, ``level`` and ``msg`` first.

Libraries that log through the standard library end in the same stream; none of them may print request bodies.
"""

import logging
import sys
from typing import Any, Final, Literal, TextIO, cast

import msgspec
import structlog
from stamina.instrumentation import StructlogOnRetryHook, set_on_retry_hooks
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

Log = FilteringBoundLogger
_QUIET: Final = ("kubernetes_asyncio", "aiohttp.access", "asyncio")
"""The Kubernetes client prints whole bodies at debug level, secrets included."""


def configure_logs(
    *, level: str = "info", form: Literal["json", "console"] = "json", stream: TextIO | None = None
) -> None:
    """Sets up both logging roads; call once at the door."""
    target = stream or sys.stderr
    number = getattr(logging, level.upper())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    ]
    renderer: Processor
    if form == "json":
        shared += [structlog.processors.format_exc_info, structlog.processors.EventRenamer("msg"), _ordered]
        renderer = structlog.processors.JSONRenderer(serializer=_serialize)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=target.isatty(), timestamp_key="ts")
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    # The default hooks also count in prometheus_client's global registry, which nobody serves.
    set_on_retry_hooks((StructlogOnRetryHook,))
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def get_log() -> Log:
    """The service's logger."""
    return cast("Log", structlog.get_logger())


def _ordered(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    del logger, name
    first = {key: event.pop(key) for key in ("ts", "level", "msg") if key in event}
    return {**first, **event}


def _serialize(value: Any, **_: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
