"""The cache of authenticated keys: no query for a recent key, and no access for a revoked or expired one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from capabilities.access import Principal
from capabilities.acts import SYSTEM
from capabilities.models import AgentKey
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import revoke_key
from routing_admin.gateway import key_cache
from routing_admin.models import Installation
from tests.cast import key_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def enters(key: str, **headers: str) -> bool:
    return isinstance(key_cache.principal_of_key({"authorization": f"Bearer {key}", **headers}), Principal)


def test_a_key_that_came_in_before_costs_no_query(key, django_assert_num_queries):
    assert enters(key)
    with django_assert_num_queries(0):
        assert enters(key)


def test_a_revoked_key_stops_with_its_revocation_and_a_new_one_works_at_once(key):
    """In the process that revokes a key, the next call with it is refused."""
    assert enters(key)
    revoke_key(SYSTEM, AgentKey.objects.get(public_id=key.split("_")[1]))
    assert not enters(key)
    assert enters(key_of("text-agent"))


def test_a_key_revoked_by_another_process_stops_with_the_snapshots_next_look(key):
    """A change of the stamp in the database invalidates the cached keys at the snapshot's next refresh."""
    assert enters(key)
    AgentKey.objects.update(revoked_at=timezone.now())
    Installation.objects.update(version=F("version") + 1)
    snapshot.refresh()
    assert not enters(key)


def test_a_key_expires_at_its_moment_though_it_is_remembered(key):
    """The expiry is cached with the key and checked for each call."""
    moment = timezone.now()
    AgentKey.objects.update(expires_at=moment + timedelta(hours=1))
    cache, headers = key_cache.KeyCache(snapshot.newest(), now=lambda: moment), {"authorization": f"Bearer {key}"}
    assert isinstance(cache.authenticate(headers), Principal)
    AgentKey.objects.update(expires_at=moment - timedelta(seconds=1))
    assert isinstance(cache.authenticate(headers), Principal), "nothing says that the row has changed"
    moment += timedelta(hours=1)
    assert not isinstance(cache.authenticate(headers), Principal)


def test_refusals_and_the_name_of_another_agent_are_asked_anew(key):
    """Refusals are not cached. A cached key may not act for another agent."""
    assert enters(key)
    assert not enters(key, **{"x-agent-id": "vision-agent"})
    assert not enters(key + "x")
    with CaptureQueriesContext(connection) as asked:
        assert not enters(key, **{"x-agent-id": "vision-agent"})
    assert len(asked) > 0, "nothing is kept of a refusal"
