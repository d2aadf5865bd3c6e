"""Permissions of pages: the permission table lists every URL with the rights that this test expects.

The expected rights are listed in this module and not derived from the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import ResolverMatch, URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter

from artifacts.library import store_bytes
from capabilities.access import may, role_for
from capabilities.actors import SYSTEM
from capabilities.core.permissions import DJANGO_ADMIN, MACHINE_NAMESPACES, PAGE_PARTS, PAGES, PagePart
from capabilities.models import Service
from routing_admin.configuration import snapshot
from routing_admin.console.demo.load import SAMPLES
from routing_admin.models import RequestLog
from routing_admin.platform.auth.permissions import PermissionsMiddleware
from routing_admin.request_log.journal import journal
from tests.cast import HTMX, person
from tests.console.page import Page

rows = pytest.mark.django_db(databases=["default", "logs"])

CALLBACKS = {"openid_connect_callback", "feishu_callback", "dingtalk_callback", "weixin_callback"}
ANYBODY = {
    "GET": {"login", "join", "set_language", "own_page", "own_call", *CALLBACKS},
    "POST": {"login", "join", "set_language", "set_theme", "sign_in_with"},
}
"""URLs that need no sign-in. All others redirect to the login page."""

VIEWERS = {
    "GET": {
        *(
            "agent",
            "agents",
            "alias",
            "artifact",
            "artifacts",
            "audit",
            "compare",
            "config",
            "dashboard",
            "history",
            "matrix",
        ),
        *("password_change", "provider", "providers", "request", "requests", "revision", "route", "routes"),
        *("service", "services", "settings", "simulate", "user", "users"),
        *(
            "find",
            "documents",
            "document",
            "options",
            "usage",
            "usage_csv",
            "budgets",
            "requests_newer",
            "requests_volume",
            "requests_words",
            "artifact_compare",
            "catalogue",
            "alerts",
            "drill",
            "first_call",
            "drill_banner",
        ),
    },
    "POST": {
        *("logout", "session_end", "identity_unlink", "password_change", "route", "simulate", "concepts_dismiss"),
        "requests_columns",
    },
}
"""What viewers may do in addition to visitors who are not signed in. On a route's page, a viewer may only simulate
requests, because this stores nothing.
"""

EDITORS = {
    "GET": {
        *("artifact_raw", "artifact_thumbnail", "audit_export", "config_export"),
        *("agent_new", "route_new", "service_new", "matrix_row", "matrix_column"),
        "restore",
    },
    "POST": {
        *("agent", "agent_new", "agent_delete", "alias", "route_new", "route_enabled", "route_delete"),
        *("service", "service_new", "service_catalogue", "service_delete", "service_forget", "service_probe"),
        *("service_drift", "service_nightly", "matrix_cell", "matrix_fill", "matrix_probe"),
        *("undo", "restore", "options_chosen", "artifact_send", "artifact_describe", "alert_acknowledge", "alert_mute"),
    },
}
"""What editors may do in addition to viewers: change routes, services and agents, read files, export, send real
requests.
"""

ADMINISTRATORS = {
    "GET": {"tokens", "config_import", "provider_new", "provider_models", "catalogue_edition"},
    "POST": {
        *("key_issue", "key_change", "key_roll", "key_revoke", "budget_save", "budget_delete"),
        *("agent_link_make", "agent_link_revoke"),
        *("user_invite", "user_role", "user_active", "user_link", "user_withdraw", "user_session_end"),
        *("token_new", "token_revoke"),
        *(
            "settings",
            "settings_language_remove",
            "settings_language_save",
            "settings_rate_set",
            "settings_rate_remove",
        ),
        *("demo_remove", "config_import", "alert_test", "alert_webhook"),
        *("artifact_upload", "artifact_correct", "artifacts_delete", "artifacts_restore"),
        *("provider", "provider_new", "provider_models", "provider_delete", "provider_test", "providers_switch"),
        *("providers_test", "providers_try_again", "drill", "drill_end"),
        *("provider_key_add", "provider_key_change", "provider_key_remove", "provider_keys_test"),
        "provider_key_origin",
        "model_replace",
        *("catalogue", "catalogue_edition"),
    },
}
"""What only an administrator may do: change keys, providers, users, settings and files, and import a configuration."""


ROLES = ("anonymous", "viewer", "editor", "administrator")
LEAST_ROLES = tuple(zip(ROLES, (ANYBODY, VIEWERS, EDITORS, ADMINISTRATORS), strict=True))
"""Maps each role to the URLs that require at least this role. Each role includes the rights of the roles before it."""


def addresses(patterns: list[URLPattern | URLResolver]) -> Iterator[tuple[str, str]]:
    """Yield every page's name and URL. The objects in these URLs need not exist."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace not in MACHINE_NAMESPACES:
                yield from addresses(pattern.url_patterns)
        else:
            kinds = pattern.pattern.converters.items()
            arguments = {key: 987 if isinstance(kind, IntConverter) else "unknown" for key, kind in kinds}
            assert pattern.name, f"{pattern.pattern} has no name, and so no row"
            yield pattern.name, reverse(pattern.name, kwargs=arguments)


ADDRESSES = dict(addresses(get_resolver().url_patterns))


def access_result(answer: Any) -> str:
    """Classify a response as `login`, `forbidden`, `no such method`, or `in` if the view was called."""
    if answer.status_code == 302 and answer["Location"].startswith("/login/?next="):
        return "login"
    return {403: "forbidden", 405: "no such method"}.get(answer.status_code, "in")


def expected(role: str, method: str, name: str) -> str:
    least = next((of for of, names in LEAST_ROLES if name in names[method]), "")
    if role == "anonymous" and least != "anonymous":
        return "no such method" if name in ANYBODY["GET"] | ANYBODY["POST"] else "login"
    if not least:
        return "no such method"
    return "in" if ROLES.index(role) >= ROLES.index(least) else "forbidden"


@rows
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_each_role_has_exactly_the_expected_access_to_every_page(role: str, method: str, demo: None) -> None:
    walker = person("walker", is_staff=role == "administrator", is_editor=role == "editor")
    statuses = {}
    client = Client(raise_request_exception=False)
    for name, address in ADDRESSES.items():
        # Sign in at the start, and again after the page that signs out.
        if role != "anonymous" and SESSION_KEY not in client.session:
            client.force_login(walker)
        statuses[name] = access_result(client.generic(method, address))
    assert statuses == {name: expected(role, method, name) for name in ADDRESSES}


def test_permission_table_and_page_urls_list_the_same_pages() -> None:
    counts = Counter(name for family in PAGES.values() for name in family)
    assert set(counts) == set(ADDRESSES)
    assert max(counts.values()) == 1
    assert set(PAGE_PARTS) == set(PagePart)


@rows
@pytest.mark.urls("tests.permissions.unlisted_urls")
def test_page_missing_from_the_permission_table_is_refused_to_every_role(admin: Client, viewer: Client) -> None:
    assert admin.get("/unlisted/").status_code == 403
    assert viewer.post("/unlisted/").status_code == 403
    assert access_result(Client().get("/unlisted/")) == "login"


@rows
@pytest.mark.urls("tests.permissions.unlisted_urls")
def test_permission_table_limits_the_http_methods_of_a_view(admin: Client, viewer: Client) -> None:
    """If the table allows only GET for a page, POST gets a 405, even if the page's view accepts every method."""
    answer = admin.post("/")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert viewer.get("/").content == b"reached"


@rows
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "SHOUT"])
def test_unsupported_http_methods_are_refused(method: str, viewer: Client) -> None:
    for name in ("key_revoke", "user_role", "artifact_raw", "config_export", "settings_rate_set"):
        assert viewer.generic(method, ADDRESSES[name]).status_code in (403, 405)


@rows
def test_htmx_requests_need_the_same_rights_as_pages(viewer: Client) -> None:
    assert viewer.post(ADDRESSES["key_revoke"], headers=HTMX).status_code == 403
    anonymous = Client().post(ADDRESSES["key_revoke"], headers=HTMX)
    assert (anonymous.status_code, anonymous["HX-Redirect"]) == (204, "/login/")


# Parts of pages that viewers do not see.


@rows
def test_recorded_bodies_file_contents_exports_and_real_requests_are_denied_only_to_viewers() -> None:
    viewer, editor, admin = person("vera"), person("edith", is_editor=True), person("ada", is_staff=True)
    assert [role_for(client) for client in (viewer, editor, admin)] == ["viewer", "editor", "administrator"]
    assert [part for part in PagePart if may(viewer, part)] == []
    parts = {"recorded_bodies", "artifact_bytes", "exports", "real_requests"}
    for client in (editor, admin):
        assert {part.value for part in PagePart if may(client, part)} == parts


@rows
@pytest.mark.parametrize(
    ("sample", "content"),
    [("briefing.md", "first model answered"), ("report.pdf", "12.4 thousand"), ("secret.html", "meet me at noon")],
)
def test_file_page_shows_no_file_content_to_viewers(
    sample: str, content: str, demo: None, admin: Client, viewer: Client
) -> None:
    """A file's page shows viewers none of the file's text, in whichever form models receive the file."""
    Service.objects.update(content={"policy": "extract"})
    snapshot.refresh()
    data = (SAMPLES / sample).read_bytes() if (SAMPLES / sample).exists() else b"<p>meet me at noon</p>"
    row = store_bytes(SYSTEM, data, filename=sample)
    address = reverse("artifact", args=[row.pk])
    assert Page(admin.get(address)).shows(content)
    assert content not in viewer.get(address).content.decode()
    for service in ("text-model", "vision-model", "multimodal-model"):
        card = viewer.get(address, {"service": service, "fragment": "card"})
        assert content not in card.content.decode()


@rows
def test_viewer_simulates_without_file_contents_and_cannot_send_requests(demo: None, viewer: Client) -> None:
    row = store_bytes(SYSTEM, b"meet me at noon", filename="diary.txt")
    form = {"sim-message": "hello", "sim-artifact": row.pk, "task": "planning"}
    for act in ("simulate", "send"):
        for address in ("/simulate/", "/routes/planning/"):
            answer = viewer.post(address, {**form, "act": act})
            assert "meet me at noon" not in answer.content.decode()
            assert not [control for control in Page(answer).controls if control.attributes.get("value") == "send"]
    journal().flush()
    assert not RequestLog.objects.exists()


@rows
@pytest.mark.parametrize(
    "name",
    ["routes", "providers", "services", "matrix", "agents", "artifacts", "config", "history", "users", "settings"],
)
def test_pages_are_editable_for_administrators_but_not_for_viewers(
    name: str, demo: None, admin: Client, viewer: Client
) -> None:
    assert admin.get(reverse(name)).context["can_edit"] is True
    assert viewer.get(reverse(name)).context["can_edit"] is False


def role_shown(answer: Any) -> str:
    menu = Page(answer).disclosure("Account, language and theme")
    name_and_role = next(control for control in menu.controls if control.tag == "summary")
    return name_and_role.text.split()[-1]


@rows
@pytest.mark.parametrize(("staff", "role_name"), [(True, "Administrator"), (False, "Viewer")])
@pytest.mark.parametrize("name", ["dashboard", "requests", "simulate", "password_change"])
def test_every_page_shows_the_role_of_the_signed_in_user(
    name: str, staff: bool, role_name: str, admin: Client, viewer: Client
) -> None:
    assert role_shown((admin if staff else viewer).get(reverse(name))) == role_name


@rows
def test_menu_shows_the_signed_in_users_role_on_another_users_page(admin: Client, viewer_account: Any) -> None:
    assert role_shown(admin.get(reverse("user", args=[viewer_account.pk]))) == "Administrator"


@pytest.mark.parametrize(
    ("method", "name", "status"), [("GET", "index", None), ("POST", "logout", None), ("POST", "index", 405)]
)
def test_superuser_can_only_view_rows_and_sign_out_in_django_admin(method: str, name: str, status: int | None) -> None:
    """Django's own admin can be enabled by a setting."""
    request = RequestFactory().generic(method, "/django-admin/")
    request.user = User(username="root", is_superuser=True)
    request.resolver_match = ResolverMatch(print, (), {}, name, namespaces=[DJANGO_ADMIN])
    answer = PermissionsMiddleware(HttpResponse).process_view(request, print, (), {})
    assert (answer and answer.status_code) == status
