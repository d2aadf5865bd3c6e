"""Names, plans and endpoints are resolved once per configuration snapshot, and no lookup returns another's result."""

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
from routing_admin.dispatch.decisions import Decisions, cached_decisions

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

ECHO = CandidateSpec("echo", "echo-text")
QUERY = RoutingQuery("draft")


@pytest.fixture
def state(demo: None) -> Snapshot:
    return snapshot.current()


def test_resolved_names_plans_and_endpoints_are_cached(state: Snapshot) -> None:
    """Looking up a name, plan or endpoint a second time returns the same object."""
    cache = cached_decisions(state)
    resolved = cache.resolve("task:design", None)
    plan = cache.plan(resolved.route, QUERY, matched=True)
    assert cached_decisions(state) is cache
    assert cache.resolve("task:design", None) is resolved
    assert cache.plan(resolved.route, RoutingQuery("draft"), matched=True) is plan
    candidate = next(candidate for candidate in plan.candidates if candidate.skip is None)
    assert cache.endpoint(resolved.route, candidate, None) is cache.endpoint(resolved.route, candidate, None)


def test_cached_plan_equals_a_newly_computed_one(state: Snapshot) -> None:
    cache, route = cached_decisions(state), cached_decisions(state).resolve("task:design", None).route
    for query in (QUERY, RoutingQuery("draft", "en"), RoutingQuery("draft", "en", Params(0.5, 7))):
        computed = plan_route(state.configuration, route, query, matched=False, unusable=cache.unusable)
        assert cache.plan(route, query, matched=False) == computed
        assert cache.plan(route, query, matched=False) == computed


def test_new_configuration_snapshot_has_its_own_cache(state: Snapshot) -> None:
    """A new snapshot does not use the previous one's cached plans."""
    later = replace(state, stamp=state.stamp + 1)
    route = RouteSpec("draft", (ECHO,))
    first, second = cached_decisions(state), cached_decisions(later)
    assert first is not second
    assert first.plan(route, QUERY, matched=True) is not second.plan(route, QUERY, matched=True)


def test_new_draft_route_never_gets_the_cached_plan_of_a_deleted_draft(state: Snapshot) -> None:
    """Drafts are short-lived, so a new draft may get the memory address of a deleted one."""
    cache = cached_decisions(state)
    for number in range(50):
        draft = RouteSpec(f"draft-{number}", (CandidateSpec("echo", f"echo-{number}"),))
        plan = cache.plan(draft, QUERY, matched=True)
        assert (plan.task_type, plan.candidates[0].model) == (f"draft-{number}", f"echo-{number}")
        assert cache.endpoint(draft, plan.candidates[0], None).target.model == f"echo-{number}"


def test_routes_share_an_endpoint_unless_their_options_differ(state: Snapshot) -> None:
    """A candidate's `extra_body` or a route's content policy requires a separate endpoint."""
    cache = cached_decisions(state)
    plain = RouteSpec("a", (ECHO,))
    same = RouteSpec("b", (ECHO,))
    seeded = RouteSpec("c", (replace(ECHO, extra_body={"seed": 7}),))
    strict = RouteSpec("d", (ECHO,), content={"policy": "native_only"})
    endpoints = [
        cache.endpoint(route, cache.plan(route, QUERY, matched=True).candidates[0], None)
        for route in (plain, same, seeded, strict)
    ]
    assert endpoints[0] is endpoints[1]
    assert endpoints[2].target.extra_body == {"seed": 7}
    assert endpoints[3].reader.policies != endpoints[0].reader.policies
    assert cache.can_refuse_files(strict)


def test_plans_with_missing_keys_and_unknown_names_are_not_cached(state: Snapshot) -> None:
    """A provider without a key is skipped each time, and unknown names are not cached."""
    cache = cached_decisions(state)
    keyless = next(name for name, key in state.keys.items() if not key.usable)
    plan = cache.plan(RouteSpec("draft", (CandidateSpec(keyless, "m"),)), QUERY, matched=True)
    assert plan.candidates[0].skip in (SkipReason.NO_KEY, SkipReason.ORIGIN_REFUSED)
    for _ in range(2):
        with pytest.raises(UnknownModelError):
            cache.resolve("unknown", None)


def test_full_cache_is_cleared_and_plans_stay_correct(state: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is limited, because callers can request any number of names and parameters."""
    monkeypatch.setattr(decisions, "MAX_DECISIONS", 3)
    cache, route = Decisions(state), RouteSpec("draft", (ECHO,))
    # Request more plans than the cache holds, then the first plan again.
    for tokens in (*range(1, 9), 1):
        plan = cache.plan(route, RoutingQuery("draft", None, Params(None, tokens)), matched=True)
        assert plan.candidates[0].max_tokens == tokens
