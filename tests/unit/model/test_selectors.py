import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.selectors import LabelRequirement, LabelSelector, parse_selector

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "x", "y"]))


def one(operator: str, *values: str) -> LabelSelector:
    return LabelSelector(expressions=(LabelRequirement("key", operator, values),))


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (LabelSelector(), {}, True),
        (LabelSelector(), {"a": "b"}, True),
        (LabelSelector({"key": "v"}), {"key": "v", "more": ""}, True),
        (LabelSelector({"key": "v"}), {"key": "w"}, False),
        (LabelSelector({"key": ""}), {}, False),
        (one("In", "v", "w"), {"key": "w"}, True),
        (one("In", "v"), {}, False),
        (one("In"), {"key": "v"}, False),
        (one("NotIn", "v"), {"key": "v"}, False),
        (one("NotIn", "v"), {}, True),
        (one("Exists"), {"key": ""}, True),
        (one("Exists"), {}, False),
        (one("DoesNotExist"), {"key": "v"}, False),
        (one("DoesNotExist"), {}, True),
        (one("Newer", "v"), {}, True),
    ],
)
def test_a_selector_matches_as_the_api_has_it(
    selector: LabelSelector, labels: dict[str, str], selected: bool
) -> None:
    assert selected is selector.selects(labels)


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("  ", {}, True),
        ("gpu=true", {"gpu": "true"}, True),
        ("gpu==true", {"gpu": "false"}, False),
        (" gpu = true , team!=lab ", {"gpu": "true"}, True),
        ("team!=lab", {"team": "lab"}, False),
        ("!legacy", {"legacy": ""}, False),
        ("example.com/gpu", {"example.com/gpu": "no"}, True),
        ("gpu=", {"gpu": ""}, True),
    ],
)
def test_people_write_selectors_as_text(text: str, labels: dict[str, str], selected: bool) -> None:
    assert selected is parse_selector(text).selects(labels)


@pytest.mark.parametrize("text", ["gpu in (true,false)", ",", "a=b,", "=true", "a=b=c", "!", "a b", "a>1"])
def test_an_unreadable_term_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="not a label selector term"):
        parse_selector(text)


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_selector(text), LabelSelector)


@given(LABELS, st.sampled_from(["a", "a=x", "a=y", "b="]))
def test_a_term_and_its_denial_split_all_labels(labels: dict[str, str], term: str) -> None:
    denial = term.replace("=", "!=") if "=" in term else f"!{term}"

    assert parse_selector(term).selects(labels) is not parse_selector(denial).selects(labels)
