"""At least one administrator can always sign in, even if several give up the role at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connections

from capabilities.actors import SYSTEM
from capabilities.errors import InUseError
from routing_admin.console.people import actions as people

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])


def test_one_administrator_remains_if_all_step_down_at_the_same_time(demo: None) -> None:
    rows = [User.objects.create_superuser(name, password="long enough 1") for name in ("ada", "bob", "cyd", "dan")]
    User.objects.exclude(pk__in=[row.pk for row in rows]).update(is_staff=False)
    begin = Barrier(len(rows))

    def step_down(row: User) -> bool:
        begin.wait()
        try:
            if row.pk % 2:
                people.set_role(SYSTEM, row.pk, "viewer", expected="administrator")
            else:
                people.set_active(SYSTEM, row.pk, active=False)
        except InUseError:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(len(rows)) as threads:
        outcomes = list(threads.map(step_down, rows))
    assert sorted(outcomes) == [False, True, True, True]
    assert User.objects.filter(is_staff=True, is_active=True).count() == 1
