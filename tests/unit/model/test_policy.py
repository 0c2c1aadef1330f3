import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import policies

from autoscaler.model.duration import Duration
from autoscaler.model.policy import (
    Evidence,
    Methods,
    Policy,
    PolicyError,
    _decode_hook,
    _encode_hook,
    policy_from_dict,
    policy_schema,
    policy_to_dict,
    section_fields,
)


def test_an_empty_document_is_the_default_policy() -> None:
    assert Policy() == policy_from_dict({})


@given(policies())
def test_a_policy_reads_back_equal(policy: Policy) -> None:
    assert policy == policy_from_dict(policy_to_dict(policy))


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (None, "Expected `object`"),
        ([], "Expected `object`"),
        ({1: 2}, "Expected `str`"),
        ({"evidense": {}}, "unknown field `evidense` (allowed: resources, evidence, need, methods"),
        ({"evidence": {"windw": "5m"}}, "unknown field `windw` - at `$.evidence` (allowed: window, interval"),
        ({"evidence": {"min_coverage": 1}}, "(allowed: window, interval, sourceJob, profiles, minCoverage"),
        (
            {"evidence": {"window": 5}},
            "a duration is text such as 30s, 10m or 2d, got 5 - at `$.evidence.window`",
        ),
        ({"evidence": {"window": "5"}}, "not a duration (use e.g. 30s, 10m, 1h30m, 2d): '5'"),
        ({"evidence": {"window": "0"}}, "evidence.window must be over 0s"),
        ({"evidence": {"window": "8d"}}, "need.historyWindow must not be shorter than evidence.window"),
        ({"evidence": {"window": "1h"}}, "methods.idleFloor must not be shorter than evidence.window"),
        ({"evidence": {"idleCeiling": 0.5}}, "evidence.idleCeiling must not exceed evidence.activeFloor"),
        ({"evidence": {"minCoverage": 7}}, "<= 1.0 - at `$.evidence.minCoverage`"),
        ({"evidence": {"minCoverage": float("nan")}}, "minCoverage"),
        ({"need": {"targetUtilization": 0}}, ">= 0.01 - at `$.need.targetUtilization`"),
        ({"need": {"confidenceUnit": "0"}}, "need.confidenceUnit must be over 0s"),
        ({"need": {"minConfidence": float("inf")}}, "need.minConfidence must be a finite number"),
        ({"methods": {"savingsFloor": float("inf")}}, "methods.savingsFloor must be a finite number"),
        ({"methods": {"restartFactor": 1e308}}, "<= 1000.0 - at `$.methods.restartFactor`"),
        ({"methods": {"rightSize": "yes"}}, "Expected `bool`"),
        ({"resources": {"podSelector": "a in (b)"}}, "not a label selector term"),
        ({"resources": {"boards": ["cpu"]}}, "'cpu' is not an extended resource"),
        ({"resources": {"slices": [""]}}, "'' is not an extended resource"),
        ({"resources": {"steps": [0]}}, ">= 1"),
        ({"modes": {"default": "destroy"}}, "destroy"),
    ],
)
def test_a_bad_document_is_refused_naming_the_field_and_what_is_allowed(document: Any, told: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_from_dict(document)

    assert told in str(caught.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["evidence", "window", "need", "x"]) | st.integers(), inner, max_size=3
            )
        ),
    )
)
def test_any_document_is_a_policy_or_a_policy_error(document: Any) -> None:
    with contextlib.suppress(PolicyError):
        assert isinstance(policy_from_dict(document), Policy)


def test_durations_in_code_are_accepted_as_they_are() -> None:
    assert policy_from_dict({"evidence": {"maxLag": Duration(7)}}).evidence.max_lag == 7


def test_a_policy_made_in_code_is_held_to_the_same_rules() -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        Policy(evidence=Evidence(min_coverage=float("nan")))
    with pytest.raises(ValueError, match=r"methods.idleFloor"):
        Policy(methods=Methods(idle_floor=Duration(1)))


def test_the_schema_has_every_field_with_its_default_and_the_reason_for_numbers() -> None:
    schema = policy_schema()
    found = {
        name: set(section["properties"]) for name, section in schema["$defs"].items() if name != "Policy"
    }
    expected = {
        field.type.__name__: set(section_fields((field.encode_name,)))
        for field in msgspec.structs.fields(Policy)
    }

    assert found.pop("FreezeWindow") == {
        *("schedule", "duration", "timeZone", "methods", "namespaces", "reason")
    }
    assert expected == found
    for title, section in schema["$defs"].items():
        for name, field in section["properties"].items():
            # A window states when it opens and for how long; nothing stands in for that.
            assert (
                "default" in field
                or "$ref" in field
                or (title, name)
                in {
                    ("FreezeWindow", "schedule"),
                    ("FreezeWindow", "duration"),
                }
            )


def test_the_schema_shows_durations_as_text() -> None:
    window = policy_schema()["$defs"]["Evidence"]["properties"]["window"]

    assert (window["type"], window["default"]) == ("string", "30m")
    assert window["description"].startswith("the window that must be covered")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ((), ("resources", "evidence", "need", "methods", "guards", "budgets", "freeze", "yield", "modes")),
        (("modes",), ("default", "makeRoom", "rightSize", "scaleIn", "idle", "deactivate", "namespaces")),
        (("nowhere",), ()),
        (("evidence", "window"), ()),
    ],
)
def test_the_names_allowed_at_a_path(path: tuple[str, ...], fields: tuple[str, ...]) -> None:
    assert fields == section_fields(path)


def test_every_number_has_a_written_reason() -> None:
    for section in msgspec.structs.fields(Policy):
        for field in msgspec.structs.fields(section.type):
            if isinstance(field.default, (float, Duration)):
                assert "description=" in repr(field.type), f"{section.name}.{field.name}"


def test_only_durations_have_a_form_of_their_own() -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        _encode_hook(1j)
    with pytest.raises(NotImplementedError, match="complex"):
        _decode_hook(complex, 1)


def test_a_source_job_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"evidence\.sourceJob is not a regular expression"):
        policy_from_dict({"evidence": {"sourceJob": "dcgm("}})


@pytest.mark.parametrize(
    ("modes", "words", "acting"),
    [
        ({}, "recommend", False),
        ({"default": "apply"}, "apply", True),
        ({"rightSize": "apply", "idle": "observe"}, "recommend, right-size apply, idle observe", True),
        ({"default": "observe", "scaleIn": "observe"}, "observe", False),
    ],
)
def test_the_mode_names_the_kinds_that_differ(modes: dict[str, str], words: str, acting: bool) -> None:
    stated = policy_from_dict({"modes": modes}).modes

    assert (stated.in_words, stated.acting) == (words, acting)
