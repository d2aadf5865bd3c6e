"""The cache of authenticated keys: a recently used key needs no query, and a revoked or expired key is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from capabilities.access import Principal
from capabilities.actors import SYSTEM
from capabilities.models import AgentKey
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import revoke_key
from routing_admin.gateway import key_cache
from routing_admin.models import Installation
from tests.cast import create_key

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def is_accepted(key: str, **headers: str) -> bool:
    return isinstance(key_cache.principal_by_key({"authorization": f"Bearer {key}", **headers}), Principal)


def test_recently_used_key_needs_no_query(key, django_assert_num_queries):
    assert is_accepted(key)
    with django_assert_num_queries(0):
        assert is_accepted(key)


def test_revoked_key_is_refused_and_a_new_one_accepted_at_once(key):
    assert is_accepted(key)
    revoke_key(SYSTEM, AgentKey.objects.get(public_id=key.split("_")[1]))
    assert not is_accepted(key)
    assert is_accepted(create_key("text-agent"))


def test_key_revoked_by_another_process_is_refused_after_a_refresh(key):
    """If the configuration's version in the database has changed, the next snapshot refresh clears the cached keys."""
    assert is_accepted(key)
    AgentKey.objects.update(revoked_at=timezone.now())
    Installation.objects.update(version=F("version") + 1)
    snapshot.refresh()
    assert not is_accepted(key)


def test_cached_key_expires_on_time(key):
    """The expiry time is cached with the key and compared at each call."""
    moment = timezone.now()
    AgentKey.objects.update(expires_at=moment + timedelta(hours=1))
    cache, headers = key_cache.KeyCache(snapshot.newest(), now=lambda: moment), {"authorization": f"Bearer {key}"}
    assert isinstance(cache.authenticate(headers), Principal)
    AgentKey.objects.update(expires_at=moment - timedelta(seconds=1))
    assert isinstance(cache.authenticate(headers), Principal), "nothing says that the row has changed"
    moment += timedelta(hours=1)
    assert not isinstance(cache.authenticate(headers), Principal)


def test_refusals_and_calls_for_other_agents_are_not_cached(key):
    assert is_accepted(key)
    assert not is_accepted(key, **{"x-agent-id": "vision-agent"})
    assert not is_accepted(key + "x")
    with CaptureQueriesContext(connection) as queries:
        assert not is_accepted(key, **{"x-agent-id": "vision-agent"})
    assert len(queries) > 0, "a refusal is not cached"


def test_cached_keys_are_limited_in_number(key, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(key_cache, "MAX_ENTRIES", 2)
    cache, headers = key_cache.KeyCache(snapshot.newest()), [{"authorization": f"Bearer {key}"}]
    headers += [{"authorization": f"Bearer {create_key('text-agent')}"} for _ in range(2)]
    for credentials in headers:
        assert isinstance(cache.authenticate(credentials), Principal)
    with CaptureQueriesContext(connection) as queries:
        cache.authenticate(headers[2])
        assert len(queries) == 0, "the newest key is cached"
        cache.authenticate(headers[0])
        assert len(queries) > 0, "older keys were dropped when the cache was full"
