"""The shortest list of changes from one chain to another, as the save bar shows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from routing_admin.core.configuration.diff import diff, sentence
from routing_admin.core.configuration.route_changes import RouteChange, RouteChangeKind, route_changes
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec


def route(*names: str, **fields: object) -> RouteSpec:
    return RouteSpec("design", tuple(CandidateSpec(*name.split("/")) for name in names), **fields)  # type: ignore[arg-type]


def test_a_moved_candidate_is_one_change_with_both_places() -> None:
    """A moved candidate is a single change; the others kept their order and are not mentioned."""
    assert route_changes(route("a", "b", "c", "d"), route("a", "c", "d", "b")) == (
        RouteChange(did=RouteChangeKind.MOVED, candidate="b", before=2, after=4),
    )


def test_added_and_removed_candidates_have_their_positions() -> None:
    """A removed candidate has its old position, a new one its new position."""
    assert route_changes(route("a", "b"), route("b", "c/m")) == (
        RouteChange(did=RouteChangeKind.REMOVED, candidate="a", before=1),
        RouteChange(did=RouteChangeKind.ADDED, candidate="c/m", after=2),
    )


def test_a_repeat_that_is_removed_is_one_change() -> None:
    """Removing one of two equal candidates is a single change with its position."""
    assert route_changes(route("a", "b", "a"), route("a", "b")) == (
        RouteChange(did=RouteChangeKind.REMOVED, candidate="a", before=3),
    )


def test_parameter_changes_name_their_candidate_or_none() -> None:
    """Setting a temperature of 0 is a change, since 0 is not a missing value."""
    before = route("a", enabled=True)
    after = RouteSpec("design", (CandidateSpec("a", temperature=0),), retries=1)
    assert route_changes(before, after) == (
        RouteChange(did=RouteChangeKind.SET, candidate="a", field="temperature", before=None, after=0),
        RouteChange(did=RouteChangeKind.SET, candidate="", field="retries", before=None, after=1),
    )


def test_a_candidates_further_fields_are_seen_by_the_draft_and_in_sentences() -> None:
    """Changed extra fields of a candidate are part of the draft's changes and of the sentence."""
    before, after = route("a"), RouteSpec("design", (CandidateSpec("a", extra_body={"seed": 1}, extra={"x": 2}),))
    assert [change.field for change in route_changes(before, after)] == ["extra_body", "extra"]
    changes = diff(Configuration(routes=(before,)), Configuration(routes=(after,)))
    assert [sentence(change) for change in changes] == [
        "candidates of task route “design” changes from a to a (extra_body {'seed': 1}, extra {'x': 2})."
    ]


NAMES = st.lists(st.sampled_from("abcde"), max_size=6)


@given(NAMES, NAMES)
def test_no_changes_are_listed_exactly_if_nothing_changed(old: list[str], new: list[str]) -> None:
    """For any two chains a change is reported if and only if they differ."""
    assert (route_changes(route(*old), route(*new)) == ()) == (old == new)
