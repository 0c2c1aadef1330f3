import io
import logging
from collections.abc import Iterator

import pytest
import stamina
import structlog
from blockbuster import blockbuster_ctx

from autoscaler.service.logs import configure_logs


@pytest.fixture(autouse=True)
def logs() -> Iterator[io.StringIO]:
    """Where the service's log goes in this test; retries do not wait."""
    stream = io.StringIO()
    configure_logs(level="info", form="json", stream=stream)
    stamina.set_testing(True, attempts=1)
    yield stream
    stamina.set_testing(False)
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = []


@pytest.fixture(autouse=True)
def no_blocking() -> Iterator[None]:
    """A blocking call on the event loop is an error."""
    with blockbuster_ctx("autoscaler") as buster:
        for function in buster.functions.values():
            # Runs in a thread of its own, with a loop of its own for the client library's coroutines.
            function.can_block_in("autoscaler/kube/config.py", "_run_loader")
        yield
