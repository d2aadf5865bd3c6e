"""The shortest list of changes from one fallback chain to another, shown in the save bar of a route's page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.configuration.diff import diff, sentence
from routing_admin.core.configuration.route_changes import RouteChange, RouteChangeKind, route_changes
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec


def route(*names: str, **fields: object) -> RouteSpec:
    return RouteSpec("design", tuple(CandidateSpec(*name.split("/")) for name in names), **fields)  # type: ignore[arg-type]


def test_moved_candidate_is_one_change_with_both_positions() -> None:
    assert route_changes(route("a", "b", "c", "d"), route("a", "c", "d", "b")) == (
        RouteChange(did=RouteChangeKind.MOVED, candidate="b", before=2, after=4),
    )


def test_added_and_removed_candidates_have_their_positions() -> None:
    assert route_changes(route("a", "b"), route("b", "c/m")) == (
        RouteChange(did=RouteChangeKind.REMOVED, candidate="a", before=1),
        RouteChange(did=RouteChangeKind.ADDED, candidate="c/m", after=2),
    )


def test_removed_duplicate_is_one_change() -> None:
    assert route_changes(route("a", "b", "a"), route("a", "b")) == (
        RouteChange(did=RouteChangeKind.REMOVED, candidate="a", before=3),
    )


def test_parameter_change_names_its_candidate_if_any() -> None:
    before = route("a", enabled=True)
    after = RouteSpec("design", (CandidateSpec("a", temperature=0),), retries=1)
    assert route_changes(before, after) == (
        RouteChange(did=RouteChangeKind.SET, candidate="a", field="temperature", before=None, after=0),
        RouteChange(did=RouteChangeKind.SET, candidate="", field="retries", before=None, after=1),
    )


def test_extra_fields_of_a_candidate_are_listed_as_changes() -> None:
    before, after = route("a"), RouteSpec("design", (CandidateSpec("a", extra_body={"seed": 1}, extra={"x": 2}),))
    assert [change.field for change in route_changes(before, after)] == ["extra_body", "extra"]
    changes = diff(Configuration(routes=(before,)), Configuration(routes=(after,)))
    assert [sentence(change) for change in changes] == [
        "candidates of task route “design” changes from a to a (extra_body {'seed': 1}, extra {'x': 2})."
    ]


NAMES = st.lists(st.sampled_from("abcde"), max_size=6)


@given(NAMES, NAMES)
def test_route_changes_are_empty_if_and_only_if_the_chains_are_equal(old: list[str], new: list[str]) -> None:
    assert (route_changes(route(*old), route(*new)) == ()) == (old == new)
