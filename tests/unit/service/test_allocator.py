"""Memory that was freed goes back to the kernel."""

import platform

import pytest

from autoscaler.service import allocator
from autoscaler.service.allocator import give_back, tune_allocator


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the switches are glibc's")
def test_glibc_takes_every_switch() -> None:
    assert tune_allocator()


def test_a_c_library_without_switches_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "_switch", lambda _name: None)

    assert not tune_allocator()
    assert not give_back()
