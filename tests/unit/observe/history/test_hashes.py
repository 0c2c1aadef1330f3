import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observe.history.hashes import MISSING, HashIndex, hashed


def test_numbers_go_by_first_appearance_and_stay() -> None:
    index = HashIndex()

    assert index.find(hashed(["a"])).tolist() == [MISSING]
    assert index.unknown(hashed(["b", "a", "b"])).tolist() == [0, 1]
    assert index.number(hashed(["b", "a", "b"])).tolist() == [0, 1, 0]
    assert index.number(hashed(["c", "a"])).tolist() == [2, 1]
    assert index.find(hashed(["a", "b", "c", "d"])).tolist() == [1, 0, 2, MISSING]
    assert len(index) == 3


def test_nothing_is_nothing() -> None:
    index, nothing = HashIndex(), np.empty(0, dtype=np.int64)

    assert index.number(nothing).tolist() == []
    assert index.unknown(nothing).tolist() == []
    assert len(index) == 0


@given(st.lists(st.lists(st.integers(-(2**60), 2**60), max_size=20), max_size=8))
def test_it_numbers_as_a_dict_would(blocks: list[list[int]]) -> None:
    index, plain = HashIndex(), dict[int, int]()
    for block in blocks:
        expected = [plain.setdefault(hash(value), len(plain)) for value in block]

        assert index.number(hashed(block)).tolist() == expected
    assert len(index) == len(plain)
