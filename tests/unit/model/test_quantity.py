import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.quantity import QuantityError, parse_quantity, resource_amount


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("100m", Fraction(1, 10)),
        ("250u", Fraction(1, 4000)),
        ("1n", Fraction(1, 10**9)),
        ("1k", Fraction(1000)),
        ("1Ki", Fraction(1024)),
        ("32731152Ki", Fraction(32731152 * 1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1e+3", Fraction(1000)),
        ("12e-2", Fraction(12, 100)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("+1", Fraction(1)),
        ("-1", Fraction(-1)),
    ],
)
def test_a_quantity_is_exact(text: str, value: Fraction) -> None:
    assert value == parse_quantity(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1\n",
        "1e",
        "e3",
        ".",
        "-",
        "1K",
        "1ki",
        "1KI",
        "1mi",
        "1_0",
        "0x10",
        "1,5",
        "1.2.3",
        "--1",
        "NaN",
        "inf",
        "٣",
        "1e99",
        "1e-99",
        "1 Gi",
        "9" * 65,
        "null",
        "1Kim",
    ],
)
def test_junk_is_refused_naming_it(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)

    assert repr(text[:64]) in str(caught.value)


@given(st.decimals(-(10**12), 10**12, places=6), st.sampled_from(["", "m", "k", "Ki", "Gi", "e3", "e-2"]))
def test_every_decimal_with_a_suffix_is_exact(number: object, suffix: str) -> None:
    scale = {
        "": 1,
        "m": Fraction(1, 1000),
        "k": 1000,
        "Ki": 1024,
        "Gi": 2**30,
        "e3": 1000,
        "e-2": Fraction(1, 100),
    }

    assert Fraction(str(number)) * scale[suffix] == parse_quantity(f"{number:f}{suffix}")


@given(st.text(max_size=80))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert isinstance(parse_quantity(text), Fraction)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "100m", 100),
        ("cpu", "0.0001", 1),
        ("memory", "1Ki", 1024),
        ("memory", "1500m", 2),
        ("nvidia.com/gpu", "2", 2),
        ("nvidia.com/gpu", "0.5", 1),
        ("memory", "16Ei", 2**63 - 1),
        ("cpu", "1E30", 2**63 - 1),
    ],
)
def test_amounts_round_up_and_stop_at_the_servers_largest(resource: str, text: str, amount: int) -> None:
    assert amount == resource_amount(resource, text)


def test_a_negative_amount_is_refused_naming_the_resource() -> None:
    with pytest.raises(QuantityError, match=r"negative amount of nvidia\.com/gpu: '-1'"):
        resource_amount("nvidia.com/gpu", "-1")
