"""Credentials are read once for all who wait, and never inside the loop."""

import asyncio

import pytest

from autoscaler.kube.credentials import CachedCredentials, FixedCredentials
from autoscaler.kube.errors import AccessError

pytestmark = pytest.mark.contract


async def test_many_requests_after_a_refusal_cause_one_read() -> None:
    reads = 0

    async def read() -> str:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0)
        return f"Bearer {reads}"

    credentials = CachedCredentials(read)
    values = await asyncio.gather(*(credentials.authorization() for _ in range(20)))

    assert set(values) == {"Bearer 1"}

    credentials.invalidate()

    assert await credentials.authorization() == "Bearer 2"


async def test_a_read_that_fails_after_a_refusal_is_tried_again_only_later() -> None:
    reads = 0

    async def read() -> str:
        nonlocal reads
        reads += 1
        raise AccessError("gone")

    credentials = CachedCredentials(read, initial="Bearer old")
    credentials.invalidate()

    assert [await credentials.authorization() for _ in range(3)] == ["Bearer old"] * 3
    assert reads == 1


async def test_fixed_credentials_stay_what_they_are() -> None:
    credentials = FixedCredentials("Bearer x")
    credentials.invalidate()

    assert await credentials.authorization() == "Bearer x"
