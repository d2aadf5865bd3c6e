"""A committed change is reported as done, even if something fails afterwards.

A user who has been deleted in the meantime is reported as not found.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from capabilities.actors import Actor
from capabilities.errors import NotFoundError
from routing_admin.configuration import publishing, revisions, snapshot
from routing_admin.console.people import actions as people
from routing_admin.models import Revision, TaskRoute
from tests.cast import create_token, open_browser, person

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
ROUTE = {"provider": "echo", "model": "echo-text"}


@pytest.fixture
def script(demo: None, admin_account: User) -> Client:
    return Client(headers={"authorization": f"Bearer {create_token(admin_account)}"}, raise_request_exception=False)


def write_route(script: Client, name: str) -> Any:
    body = json.dumps(ROUTE).encode()
    return script.generic("PUT", f"/api/v1/admin/routes/{name}", body, "application/json")


@pytest.mark.smoke
@pytest.mark.parametrize("failing", ["refresh", "hint", "publish"])
def test_failure_after_the_commit_is_logged_and_the_change_succeeds(
    failing: str, script: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise OperationalError("database is locked")

    snapshot.current()
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        if failing == "refresh":
            patch.setattr(snapshot.newest(), "_build", fail)
        elif failing == "hint":
            patch.setattr(revisions, "notify_change", fail)
        else:
            patch.setattr(publishing, "publish", fail)
        answer = write_route(script, "committed")
    assert answer.status_code == 201, answer.content
    assert TaskRoute.objects.filter(task_type="committed").exists()
    assert any("a change was committed, but" in record.message for record in caplog.records)
    assert not any(record.exc_info for record in caplog.records)
    assert snapshot.current().configuration.route("committed") is not None
    before = Revision.objects.count()
    assert write_route(script, "committed").status_code == 200
    assert Revision.objects.count() == before


@pytest.mark.parametrize("act", ["role", "active", "link", "withdraw"])
def test_action_on_a_deleted_user_returns_404(act: str, admin_account: User) -> None:
    user = person("gone")
    client = open_browser(admin_account)
    form = {"role": "editor", "was": "viewer", "active": "0"}
    people.withdraw_invitation(ADA, people.invite(ADA, "other", "viewer")[0].pk)
    User.objects.filter(pk=user.pk).delete()
    assert client.post(f"/users/{user.pk}/{act}/", form).status_code == 404


def test_action_on_a_concurrently_deleted_user_raises_not_found(admin_account: User) -> None:
    user, _token = people.invite(ADA, "ines", "viewer")
    User.objects.filter(pk=user.pk).delete()
    acts = (
        lambda: people.set_role(ADA, user.pk, "editor", expected="viewer"),
        lambda: people.set_active(ADA, user.pk, active=False),
        lambda: people.new_link(ADA, user),
        lambda: people.withdraw_invitation(ADA, user.pk),
        lambda: people.choose_password(ADA, user, "violet umbrella quarterly sonnet"),
    )
    for act in acts:
        with pytest.raises(NotFoundError):
            act()


def test_new_invitation_link_keeps_a_concurrently_chosen_password(admin_account: User) -> None:
    stale, _token = people.invite(ADA, "ines", "viewer")
    people.choose_password(ADA, User.objects.get(pk=stale.pk), "violet umbrella quarterly sonnet")
    people.new_link(ADA, stale)
    assert User.objects.get(pk=stale.pk).check_password("violet umbrella quarterly sonnet")
