"""The shortest list of changes from one chain to another, which the save bar of a route's page shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.configuration.diff import diff, sentence
from routing_admin.core.configuration.route_changes import RouteChange, RouteChangeKind, route_changes
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec


def route(*names: str, **fields: object) -> RouteSpec:
    return RouteSpec("design", tuple(CandidateSpec(*name.split("/")) for name in names), **fields)  # type: ignore[arg-type]


def test_a_moved_candidate_is_one_change_with_both_places() -> None:
    """A moved candidate is a single change with both positions. The others kept their order and are not listed."""
    assert route_changes(route("a", "b", "c", "d"), route("a", "c", "d", "b")) == (
        RouteChange(did=RouteChangeKind.MOVED, candidate="b", before=2, after=4),
    )


def test_added_and_removed_candidates_have_their_positions() -> None:
    """A removed candidate is listed with its old position, and a new candidate with its new position."""
    assert route_changes(route("a", "b"), route("b", "c/m")) == (
        RouteChange(did=RouteChangeKind.REMOVED, candidate="a", before=1),
        RouteChange(did=RouteChangeKind.ADDED, candidate="c/m", after=2),
    )


def test_a_repeat_that_is_removed_is_one_change() -> None:
    """Removing one of two equal candidates is a single change with the position of the removed candidate."""
    assert route_changes(route("a", "b", "a"), route("a", "b")) == (
        RouteChange(did=RouteChangeKind.REMOVED, candidate="a", before=3),
    )


def test_parameter_changes_name_their_candidate_or_none() -> None:
    """A changed field of a candidate names the candidate. Setting a temperature of 0 is a change as well."""
    before = route("a", enabled=True)
    after = RouteSpec("design", (CandidateSpec("a", temperature=0),), retries=1)
    assert route_changes(before, after) == (
        RouteChange(did=RouteChangeKind.SET, candidate="a", field="temperature", before=None, after=0),
        RouteChange(did=RouteChangeKind.SET, candidate="", field="retries", before=None, after=1),
    )


def test_a_candidates_further_fields_are_seen_by_the_draft_and_in_sentences() -> None:
    """Changes to a candidate's extra fields are listed and are part of the sentence about the chain."""
    before, after = route("a"), RouteSpec("design", (CandidateSpec("a", extra_body={"seed": 1}, extra={"x": 2}),))
    assert [change.field for change in route_changes(before, after)] == ["extra_body", "extra"]
    changes = diff(Configuration(routes=(before,)), Configuration(routes=(after,)))
    assert [sentence(change) for change in changes] == [
        "candidates of task route “design” changes from a to a (extra_body {'seed': 1}, extra {'x': 2})."
    ]


NAMES = st.lists(st.sampled_from("abcde"), max_size=6)


@given(NAMES, NAMES)
def test_no_changes_are_listed_exactly_if_nothing_changed(old: list[str], new: list[str]) -> None:
    """For any two chains, changes are listed if and only if the chains differ."""
    assert (route_changes(route(*old), route(*new)) == ()) == (old == new)
