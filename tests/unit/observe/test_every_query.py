"""Every built-in query is PromQL, asks for what its profile reads, and says the same whatever names are put into it."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import HISTORY_MS, PROFILES, WINDOW_MS

from autoscaler.observe import queries, serving
from autoscaler.observe.profiles import Profile
from autoscaler.observe.queries import one_job, pinned_jobs
from autoscaler.observe.scope import scoped
from autoscaler.observe.serving import ServingProfile, load_serving_profiles

pytestmark = pytest.mark.unit

SERVING: dict[str, ServingProfile] = {
    profile.name: profile
    for profile in load_serving_profiles(Path(__file__).parents[3] / "config" / "profiles" / "serving")
}
NAMESPACES = ("ml", "research")
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            '"} or vector(0) or x{y="',
            "\\",
            '\\"',
            "\\n",
            "a\nb",
            "a\r\tb\x00\x7f",
            "{{}}[5m]",
            "#",
            "'`",
            "|.*",
            "GPU é 漢 \u2028",
        ]
    ),
)


def builders(module: Any) -> dict[str, Any]:
    """The public functions of a module that build the queries of a profile over some time."""
    found = {}
    for name, function in inspect.getmembers(module, inspect.isfunction):
        parameters = list(inspect.signature(function).parameters)
        of_profile = parameters[:1] == ["profile"] and any(p.endswith("_ms") for p in parameters)
        if function.__module__ == module.__name__ and not name.startswith("_") and of_profile:
            found[name] = function
    return found


def texts(found: Any) -> Iterator[tuple[str, str]]:
    """The query texts in what a builder returns, by the name of the field."""
    match found:
        case None:
            return
        case str():
            yield "", found
        case tuple():
            for item in found:
                yield from texts(item)
        case _:
            for name, item in msgspec.structs.asdict(found).items():
                yield from ((name, text) for _, text in texts(item))


def built(module: Any, profile: Any, **options: Any) -> Iterator[tuple[str, str]]:
    """Every query of a profile, as (builder.field, text); a parameter without a value here is a `KeyError`."""
    spans = {"window_ms": WINDOW_MS, "history_ms": HISTORY_MS}
    for name, function in builders(module).items():
        parameters = inspect.signature(function).parameters
        arguments = {p: {**spans, **options}[p] for p in parameters if p not in {"profile", "signal"}}
        targets = (
            [(profile, signal) for signal in profile.signals] if "signal" in parameters else [(profile,)]
        )
        for target in targets:
            yield from ((f"{name}.{field}", text) for field, text in texts(function(*target, **arguments)))


def board_texts(
    profile: Profile, *, job: str = "", namespaces: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """The queries of an exporter with the matchers that the reader puts into them."""
    trusted = one_job(job) if job else ""
    inside = scoped(profile, trusted, namespaces)
    return [
        (name, text)
        for name, text in built(queries, profile, source=inside, everyone=trusted)
        if name != "jobs_query."
    ] + list(texts(queries.jobs_query(profile, window_ms=WINDOW_MS, source=trusted)))


def nodes(text: str) -> list[promql_parser.Expr]:
    """The nodes of a query that parses."""
    found: list[promql_parser.Expr] = []

    def visit(node: promql_parser.Expr) -> None:
        found.append(node)

    promql_parser.walk(promql_parser.parse(text), visit)
    return found


def selectors(text: str) -> list[promql_parser.VectorSelector]:
    """Every selector of a query."""
    return [node for node in nodes(text) if isinstance(node, promql_parser.VectorSelector)]


def shape(text: str) -> list[object]:
    """A query without the values of its matchers."""
    found: list[object] = []
    for node in nodes(text):
        match node:
            case promql_parser.AggregateExpr():
                found.append((str(node.op), tuple(node.modifier.labels) if node.modifier else ()))
            case promql_parser.VectorSelector():
                matchers = [(str(m.op), m.name) for m in node.matchers.matchers]
                found.append((node.name, tuple(matchers), len(node.matchers.or_matchers)))
            case promql_parser.Call():
                found.append(node.func.name)
            case promql_parser.MatrixSelector():
                found.append(node.range)
            case promql_parser.SubqueryExpr():
                found.append((node.range, node.step))
            case _:
                found.append(type(node).__name__)
    return found


def values(text: str, label: str) -> list[set[str]]:
    """What each selector of a query compares a label with."""
    return [{m.value for m in s.matchers.matchers if m.name == label} for s in selectors(text)]


def test_all_builders_are_found() -> None:
    assert {"signal_queries", "history_queries", "board_queries", "jobs_query"} <= builders(queries).keys()
    assert "serving_queries" in builders(serving)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_every_query_parses_and_names_only_metrics_of_its_profile(profile: Profile) -> None:
    for job in ("", "dcgm-exporter"):
        for namespaces in ((), NAMESPACES):
            found = board_texts(profile, job=job, namespaces=namespaces)

            assert found
            for _, text in found:
                assert {s.name for s in selectors(text)} <= set(profile.metrics)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_the_trusted_job_is_in_every_selector(profile: Profile) -> None:
    for name, text in board_texts(profile, job="dcgm-exporter", namespaces=NAMESPACES):
        assert all(found == {"dcgm-exporter"} for found in values(text, "job")), name


@pytest.mark.parametrize("profile", [p for p in PROFILES.values() if p.owners], ids=lambda p: p.name)
def test_restricted_namespaces_are_in_every_selector_but_of_those_queries_that_look_for_others(
    profile: Profile,
) -> None:
    label = profile.owners[0].namespace
    for name, text in board_texts(profile, namespaces=NAMESPACES):
        if name.removesuffix(".") in {"jobs_query", ""} or (name, True) == (
            "signal_queries.newest",
            EVERYONE,
        ):
            assert values(text, label) == [set()] * len(selectors(text)), name
        else:
            assert values(text, label) == [{"ml|research|"}] * len(selectors(text)), name


EVERYONE = "everyone" in inspect.signature(queries.signal_queries).parameters


SHORT = [
    msgspec.structs.replace(PROFILES[name], match={"cluster": "benign"}, signals=PROFILES[name].signals[:1])
    for name in ("dcgm", "ascend")
]
TWINS = [board_texts(profile, job="benign", namespaces=("benign",)) for profile in SHORT]


@given(HOSTILE.filter(bool))
def test_no_job_namespace_or_match_changes_a_query(value: str) -> None:
    for profile, twins in zip(SHORT, TWINS, strict=True):
        hostile = msgspec.structs.replace(profile, match={"cluster": value})
        found = board_texts(hostile, job=value, namespaces=(value,))
        for (field, text), (_, twin) in zip(found, twins, strict=True):
            assert shape(text) == shape(twin), field
            assert all(told == {value} for told in values(text, "cluster")), field
            assert all(told == {value} for told in values(text, "job")), field
            patterns = set().union(*values(text, profile.owners[0].namespace))
            assert patterns <= {f"{re.escape(value)}|"}, field


@given(HOSTILE.filter(bool))
def test_a_pattern_of_jobs_stays_one_pattern(value: str) -> None:
    profile, twin = SHORT[0], pinned_jobs("benign")
    matcher = pinned_jobs(re.escape(value))
    wanted = built(queries, profile, source=twin, everyone=twin)
    found = built(queries, profile, source=matcher, everyone=matcher)
    for (name, text), (_, benign) in zip(found, wanted, strict=True):
        assert shape(text) == shape(benign), name
        assert all(told == {re.escape(value)} for told in values(text, "job"))


@pytest.mark.parametrize("profile", SERVING.values(), ids=lambda p: p.name)
def test_every_query_of_a_server_parses_and_groups_by_its_owner(profile: ServingProfile) -> None:
    found = list(built(serving, profile, namespaces=NAMESPACES))

    assert found
    for name, text in found:
        assert {s.name for s in selectors(text)} <= set(profile.metrics), name
        groups = [set(n.modifier.labels) for n in nodes(text) if isinstance(n, promql_parser.AggregateExpr)]
        assert groups == [{profile.owner.namespace, profile.owner.pod}] * len(groups), name
        if "namespaces" in inspect.signature(serving.serving_queries).parameters:
            assert values(text, profile.owner.namespace) == [{"ml|research"}] * len(selectors(text)), name


def test_the_servers_that_are_looked_for_are_one_pattern_of_literal_names() -> None:
    (found,) = selectors(serving.live_query(tuple(SERVING.values()), window_ms=WINDOW_MS))

    (matcher,) = found.matchers.matchers
    wanted = {metric for profile in SERVING.values() for metric in profile.metrics}
    assert (matcher.name, set(matcher.value.split("|"))) == ("__name__", wanted)
    assert all(re.fullmatch(r"[a-zA-Z0-9_:]+", metric) for metric in wanted)
