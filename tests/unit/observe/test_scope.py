"""A restriction to namespaces takes nothing away that a judgement needs."""

import re

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import PROFILES

from autoscaler.observe.profiles import OwnerLabels, Profile, Signal
from autoscaler.observe.queries import one_job
from autoscaler.observe.quoting import quoted
from autoscaler.observe.scope import scoped, served_from

pytestmark = pytest.mark.unit

DCGM = PROFILES["dcgm"]
NAMES = ("ml", "research")


def matches(matchers: str, labels: dict[str, str]) -> bool:
    """Whether a series with these labels is found, as the store decides it: a missing label is an empty one."""
    tree = promql_parser.parse(f"x{{{matchers}}}")
    assert isinstance(tree, promql_parser.VectorSelector)
    for matcher in tree.matchers.matchers:
        value = labels.get(matcher.name, "")
        if matcher.op == promql_parser.MatchOp.Re:
            found = re.fullmatch(matcher.value, value) is not None
        else:
            assert matcher.op == promql_parser.MatchOp.Equal
            found = matcher.value == value
        if not found:
            return False
    return True


def owner_of(profile: Profile, labels: dict[str, str]) -> tuple[str, str] | None:
    """The first group that names a pod, as series are attributed."""
    for group in profile.owners:
        if labels.get(group.pod):
            return labels.get(group.namespace, ""), labels[group.pod]
    return None


def test_no_names_restrict_nothing() -> None:
    assert scoped(DCGM, one_job("dcgm"), ()) == one_job("dcgm")
    assert served_from("namespace", ()) == ""


def test_the_matcher_stands_beside_the_trusted_job() -> None:
    assert scoped(DCGM, one_job("dcgm"), ("research", "ml", "ml")) == (
        'job="dcgm",exported_namespace=~"ml|research|"'
    )
    assert scoped(DCGM, "", ("ml",)) == 'exported_namespace=~"ml|"'


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"exported_pod": "p", "exported_namespace": "ml", "pod": "dcgm-x", "namespace": "monitoring"}, True),
        ({"exported_pod": "p", "exported_namespace": "other", "pod": "dcgm-x", "namespace": "ml"}, False),
        ({"pod": "dcgm-x", "namespace": "monitoring"}, True),
        ({"pod": "p", "namespace": "ml"}, True),
        ({"pod": "p", "namespace": "other"}, True),
        ({"exported_pod": "p"}, True),
        ({}, True),
    ],
    ids=["ours", "theirs", "board-without-owner", "honoured", "honoured-theirs", "no-namespace", "no-labels"],
)
def test_only_what_certainly_names_another_namespace_is_left_out(labels: dict[str, str], found: bool) -> None:
    assert matches(scoped(DCGM, "", NAMES), labels) == found


namespaces = st.sampled_from(["", "ml", "research", "other", "monitoring"])
rows = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("exported_pod", "pod", "pod_name", "podName", "kube_pod", "podname"), st.just("p")),
        **dict.fromkeys(
            (
                "exported_namespace",
                "namespace",
                "pod_namespace",
                "namespace_name",
                "kube_namespace",
                "podnamespace",
            ),
            namespaces,
        ),
    },
)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
@given(rows)
def test_a_series_that_is_left_out_names_a_pod_of_another_namespace_or_no_pod_in_one(
    profile: Profile, labels: dict[str, str]
) -> None:
    matchers = scoped(profile, "", NAMES)
    if not matchers or matches(matchers, labels):
        return
    first = profile.owners[0]

    assert labels[first.namespace] not in {"", *NAMES}
    if labels.get(first.pod):
        assert owner_of(profile, labels) == (labels[first.namespace], "p")


def test_labels_that_a_scrape_writes_are_never_matched() -> None:
    plain = Profile(
        name="x",
        scope="pod",
        signals=(Signal(metric="x", kind="util", full=1),),
        owners=(OwnerLabels(pod="pod", namespace="namespace"),),
    )

    assert scoped(plain, one_job("j"), NAMES) == one_job("j")


def test_every_shipped_profile_with_owners_is_restricted() -> None:
    restricted = {name for name, profile in PROFILES.items() if scoped(profile, "", NAMES)}

    assert restricted == {name for name, profile in PROFILES.items() if profile.owners}


def test_a_server_is_where_its_scrape_target_is() -> None:
    matcher = served_from("namespace", NAMES)

    assert matcher == 'namespace=~"ml|research"'
    assert not matches(matcher, {})


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=3), st.text(max_size=12))
def test_a_name_is_a_name_and_no_pattern(names: list[str], other: str) -> None:
    matcher = served_from("namespace", names)

    assert all(matches(matcher, {"namespace": name}) for name in names)
    assert matches(matcher, {"namespace": other}) == (other in names)


@given(st.text(max_size=30))
def test_a_quoted_text_is_that_text(value: str) -> None:
    tree = promql_parser.parse(f"x{{a={quoted(value)}}}")

    assert isinstance(tree, promql_parser.VectorSelector)
    (matcher,) = tree.matchers.matchers
    assert (matcher.name, matcher.value) == ("a", value)
