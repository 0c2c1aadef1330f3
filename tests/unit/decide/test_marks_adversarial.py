import pytest
from build import NOW_MS
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.marks import DO_NOT_DISRUPT, protection


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "yes",
        "1",
        "forever",
        "2027-01-15",
        "2027-01-15T09:00:00",
        "24:00",
        "-4h",
        "9" * 20 + "h",
        "٣h",
        "TRUE!",
    ],
)
def test_our_own_mark_protects_where_it_cannot_be_read(text: str) -> None:
    assert "is unreadable" in protection({DO_NOT_DISRUPT: text}, since_ms=0, now_ms=NOW_MS)


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999+00:00"]
)
def test_the_ends_of_the_calendar_are_times_too(text: str) -> None:
    found = protection({DO_NOT_DISRUPT: text}, since_ms=0, now_ms=NOW_MS)

    assert text.startswith("9999") == bool(found)


@given(
    st.dictionaries(
        st.sampled_from([DO_NOT_DISRUPT, "karpenter.sh/do-not-disrupt", "volcano.sh/preemptable", "other"]),
        st.one_of(st.text(max_size=30), st.datetimes().map(str), st.timedeltas().map(str)),
    ),
    st.integers(-1, 2**60),
    st.integers(-(2**60), 2**60),
)
def test_no_text_makes_it_raise(annotations: dict[str, str], since_ms: int, now_ms: int) -> None:
    assert isinstance(protection(annotations, since_ms=since_ms, now_ms=now_ms), str)
