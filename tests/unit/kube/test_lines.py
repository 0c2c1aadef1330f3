"""Chunks become whole lines however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.kube.errors import UnexpectedBody
from autoscaler.kube.lines import LineSplitter, slices

pytestmark = pytest.mark.unit


@given(text=st.text(alphabet="ab\n", max_size=60), cuts=st.lists(st.integers(0, 60), max_size=8))
def test_any_cut_gives_the_same_lines(text: str, cuts: list[int]) -> None:
    data = text.encode()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    splitter = LineSplitter(1000)
    fed = [splitter.feed(data[start:end]) for start, end in pairwise(edges)]

    end = data.rfind(b"\n") + 1
    assert b"".join(fed) == data[:end]
    assert all(part.endswith(b"\n") for part in fed if part)
    assert splitter.pending == len(data) - end


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    size=st.integers(1, 50),
)
def test_slices_lose_nothing_and_cut_at_line_ends(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    parts = list(slices(data, size))

    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in parts)
    assert all(len(part) <= size + 21 for part in parts)


def test_a_line_past_the_cap_is_refused_before_it_is_complete() -> None:
    splitter = LineSplitter(10)
    splitter.feed(b"12345")

    with pytest.raises(UnexpectedBody, match="longer than 10 bytes"):
        splitter.feed(b"678901")
