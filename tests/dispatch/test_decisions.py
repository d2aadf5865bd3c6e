"""What depends on the configuration alone is computed once per snapshot and never mixed up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.planning.model_names import UnknownModelError
from routing_admin.core.planning.params import Params
from routing_admin.core.planning.plan import RoutingQuery, plan_route
from routing_admin.dispatch import decisions
from routing_admin.dispatch.decisions import Decisions, decisions_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

ECHO = CandidateSpec("echo", "echo-text")
QUERY = RoutingQuery("draft")


@pytest.fixture
def state(demo: None) -> Snapshot:
    return snapshot.current()


def test_a_name_a_plan_and_an_endpoint_are_made_once(state: Snapshot) -> None:
    """The cached objects themselves are returned."""
    found = decisions_of(state)
    named = found.resolve("task:design", None)
    plan = found.plan(named.route, QUERY, matched=True)
    assert decisions_of(state) is found
    assert found.resolve("task:design", None) is named
    assert found.plan(named.route, RoutingQuery("draft"), matched=True) is plan
    candidate = next(each for each in plan.candidates if each.skip is None)
    assert found.endpoint(named.route, candidate, None) is found.endpoint(named.route, candidate, None)


def test_a_plan_is_the_one_that_is_made_anew(state: Snapshot) -> None:
    """Each combination of language and parameters has its own plan."""
    found, route = decisions_of(state), decisions_of(state).resolve("task:design", None).route
    for query in (QUERY, RoutingQuery("draft", "en"), RoutingQuery("draft", "en", Params(0.5, 7))):
        fresh = plan_route(state.configuration, route, query, matched=False, unusable=found.unusable)
        assert found.plan(route, query, matched=False) == fresh
        assert found.plan(route, query, matched=False) == fresh


def test_the_next_snapshot_begins_with_nothing_decided(state: Snapshot) -> None:
    """Snapshots share no cached plan."""
    later = replace(state, stamp=state.stamp + 1)
    route = RouteSpec("draft", (ECHO,))
    one, other = decisions_of(state), decisions_of(later)
    assert one is not other
    assert one.plan(route, QUERY, matched=True) is not other.plan(route, QUERY, matched=True)


def test_a_draft_that_is_gone_leaves_its_plan_to_no_other(state: Snapshot) -> None:
    """Drafts are short-lived; a new one never gets the plan of a deleted one, even at the same memory address."""
    found = decisions_of(state)
    for number in range(50):
        draft = RouteSpec(f"draft-{number}", (CandidateSpec("echo", f"echo-{number}"),))
        plan = found.plan(draft, QUERY, matched=True)
        assert (plan.task_type, plan.candidates[0].model) == (f"draft-{number}", f"echo-{number}")
        assert found.endpoint(draft, plan.candidates[0], None).target.model == f"echo-{number}"


def test_routes_share_an_endpoint_unless_they_ask_in_their_own_way(state: Snapshot) -> None:
    """A candidate's `extra_body` or a route's content policy requires a separate endpoint."""
    found = decisions_of(state)
    plain = RouteSpec("a", (ECHO,))
    same = RouteSpec("b", (ECHO,))
    seeded = RouteSpec("c", (replace(ECHO, extra_body={"seed": 7}),))
    strict = RouteSpec("d", (ECHO,), content={"policy": "native_only"})
    made = [
        found.endpoint(route, found.plan(route, QUERY, matched=True).candidates[0], None)
        for route in (plain, same, seeded, strict)
    ]
    assert made[0] is made[1]
    assert made[2].target.extra_body == {"seed": 7}
    assert made[3].reader.policies != made[0].reader.policies
    assert found.can_refuse_files(strict)


def test_what_cannot_be_called_or_is_unknown_is_said_each_time(state: Snapshot) -> None:
    """A provider without a key is skipped each time, and unknown names are not cached."""
    found = decisions_of(state)
    keyless = next(name for name, key in state.keys.items() if not key.usable)
    plan = found.plan(RouteSpec("draft", (CandidateSpec(keyless, "m"),)), QUERY, matched=True)
    assert plan.candidates[0].skip in (SkipReason.NO_KEY, SkipReason.ORIGIN_REFUSED)
    for _ in range(2):
        with pytest.raises(UnknownModelError):
            found.resolve("nobody", None)


def test_no_more_is_kept_than_there_is_room_for(state: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers choose names and parameters, so a full cache is cleared; the plans stay correct."""
    monkeypatch.setattr(decisions, "MAX_DECISIONS", 3)
    found, route = Decisions(state), RouteSpec("draft", (ECHO,))
    # More plans than the cache holds, then the first one again.
    for tokens in (*range(1, 9), 1):
        plan = found.plan(route, RoutingQuery("draft", None, Params(None, tokens)), matched=True)
        assert plan.candidates[0].max_tokens == tokens
