"""Reference pages are made from code and are current."""

import pytest

from docs.generate import HERE, PAGES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_says_what_the_code_says(name: str) -> None:
    assert PAGES[name]() == (HERE / name).read_text(), "run: python -m docs.generate"
