import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from autoscaler.service.logs import configure_logs, get_log


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = []


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_time_level_and_message_first() -> None:
    configure_logs(stream=(stream := io.StringIO()))

    get_log().info("plan", actions=2, name="ns/\x1b[2Jweb\nnext")

    (line,) = lines(stream)
    assert list(line) == ["ts", "level", "msg", "actions", "name"]
    assert (line["level"], line["msg"], line["actions"]) == ("info", "plan", 2)
    assert "\x1b" not in stream.getvalue()


def test_an_exception_stays_on_one_line() -> None:
    configure_logs(stream=(stream := io.StringIO()))
    try:
        int("a defect")
    except ValueError:
        get_log().exception("task_died", task="cycle")

    (line,) = lines(stream)
    assert "ValueError: invalid literal" in str(line["exception"])


def test_levels_are_filtered() -> None:
    configure_logs(level="warning", stream=(stream := io.StringIO()))

    get_log().info("quiet")
    get_log().warning("loud")

    assert [line["msg"] for line in lines(stream)] == ["loud"]


def test_libraries_log_into_the_same_stream_and_never_bodies() -> None:
    configure_logs(level="debug", stream=(stream := io.StringIO()))

    logging.getLogger("aiohttp.server").error("Error handling request")
    logging.getLogger("kubernetes_asyncio.client.rest").debug("response body: canary")

    assert [line["msg"] for line in lines(stream)] == ["Error handling request"]


def test_the_console_form_has_no_colour_outside_a_terminal() -> None:
    configure_logs(form="console", stream=(stream := io.StringIO()))

    get_log().info("plan", actions=2)

    assert "actions=2" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
