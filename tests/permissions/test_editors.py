"""Editors may change routes, services and agents, and undo such changes. For other changes, pages say whom to ask."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from capabilities.actors import SYSTEM
from capabilities.core.permissions import PAGE_OF_KIND, UserRole, changeable_kinds
from capabilities.models import Agent, AgentKey, Provider
from routing_admin.configuration.agents.actions import change_key
from routing_admin.console.providers.actions import enable_providers, save_provider
from routing_admin.console.routes.actions import save_alias
from routing_admin.core.configuration.diff import LISTS
from routing_admin.models import Alias, AuditEvent, Person
from tests.cast import create_key
from tests.console.page import Page
from tests.console.visits import newest_revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def test_editor_creates_agents_but_cannot_issue_keys(demo: None, editor: Client) -> None:
    editor.post(reverse("agent_new"), {"agent_id": "scout", "service": "", "task_type": "planning", "version": 1})
    assert Agent.objects.filter(agent_id="scout").exists()
    page = Page(editor.get("/agents/scout/"))
    assert not page.button("Issue a key")
    assert not page.heading("Issue a key")
    assert page.shows("Only administrators issue and revoke keys")
    assert editor.post(reverse("key_issue", args=["scout"]), {"scopes": "route"}).status_code == 403


def test_refused_page_names_the_required_role(demo: None, editor: Client, viewer: Client) -> None:
    assert Page(viewer.get(reverse("route_new"))).shows("This needs the editor role.")
    refused = Page(editor.get(reverse("provider_new")))
    assert refused.heading("Not allowed")
    assert refused.shows("This needs the administrator role.")
    assert refused.shows("Ask an administrator")


def test_editor_undoes_and_restores_changes_that_editors_may_make(demo: None, editor: Client) -> None:
    editor.post(reverse("alias"), {"name": "gpt-4o", "target": "task:default"})
    revision = newest_revision()
    editor.post(reverse("undo", args=[revision]))
    assert not Alias.objects.exists()
    link = Page(editor.get(reverse("history"))).row(str(revision)).link("Restore")
    assert link
    assert link.attributes["href"] == reverse("restore", args=[revision])
    editor.post(reverse("restore", args=[revision]), {"seen": "1"})
    assert Alias.objects.get().name == "gpt-4o"


def test_editor_cannot_restore_over_a_provider_change(demo: None, editor: Client, admin: Client) -> None:
    before = newest_revision()
    enable_providers(SYSTEM, [Provider.objects.get(name="echo")], enabled=False)
    switched = newest_revision()
    assert (switched > before, Provider.objects.get(name="echo").enabled) == (True, False)
    page = Page(editor.get(reverse("history")))
    assert not page.row(str(before)).link("Restore")
    assert page.shows("Only an administrator can restore the state before it")
    for address in (reverse("restore", args=[before]), reverse("undo", args=[switched])):
        answer = Page(editor.post(address, {"next": "/history/", "seen": "1"}, follow=True))
        assert answer.shows("Only an administrator can restore it")
    assert not Provider.objects.get(name="echo").enabled
    admin.post(reverse("undo", args=[switched]))
    assert Provider.objects.get(name="echo").enabled


def test_editor_may_restore_a_revision_that_differs_only_in_routes(demo: None, editor: Client) -> None:
    before = newest_revision()
    provider = Provider.objects.get(name="echo")
    save_alias(SYSTEM, "gpt-4o", "task:default")
    for enabled in (False, True):
        provider.enabled = enabled
        save_provider(SYSTEM, provider)
    editor.post(reverse("restore", args=[before]), {"seen": "1"})
    assert not Alias.objects.exists()


def test_editor_cannot_undo_a_key_change(demo: None, editor: Client, admin: Client) -> None:
    """An agent's page shows a key's limits, but an editor cannot undo a change to the key."""
    create_key("text-agent")
    key = AgentKey.objects.get(agent__agent_id="text-agent")
    change_key(SYSTEM, key, label=key.label, terms={"team": "search"})
    changed = newest_revision()
    answer = Page(editor.post(reverse("undo", args=[changed]), {"next": "/history/"}, follow=True))
    assert answer.shows("Only an administrator can restore it")
    assert AgentKey.objects.get(pk=key.pk).terms["team"] == "search"
    admin.post(reverse("undo", args=[changed]))
    assert not AgentKey.objects.get(pk=key.pk).terms.get("team")


def test_every_kind_of_configuration_entry_has_an_edit_page(demo: None) -> None:
    """Undoing a change requires permission for the page that edits this kind of entry, so each kind needs a page."""
    assert {kind for kind, _, _ in LISTS} <= set(PAGE_OF_KIND)
    assert all(kind in changeable_kinds(UserRole.ADMINISTRATOR) for kind in PAGE_OF_KIND)


def test_role_is_set_by_the_invitation_and_changed_on_the_user_page(admin: Client) -> None:
    admin.post(reverse("user_invite"), {"username": "ines", "role": "editor"})
    ines = get_user_model().objects.get(username="ines")
    assert (ines.is_staff, Person.objects.get(user=ines).is_editor) == (False, True)
    assert Page(admin.get(reverse("users"))).row("ines").shows("Editor")
    admin.post(reverse("user_role", args=[ines.pk]), {"role": "viewer", "was": "editor"})
    assert not Person.objects.get(user=ines).is_editor
    details = AuditEvent.objects.filter(action="user.role").values_list("details", flat=True)
    assert list(details) == [{"from": "editor", "to": "viewer", "sessions": 0, "tokens": 0}]
