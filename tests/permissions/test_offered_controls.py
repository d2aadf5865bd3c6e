"""Pages offer no form, button or link that the user's role may not use."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import Resolver404, resolve, reverse

from artifacts.models import Artifact
from capabilities.core.permissions import Right, UserRole, right_on_page
from routing_admin.models import RequestLog, Revision
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def link_targets(page: Page) -> list[str]:
    """Return the URLs of all links, and those from which elements load fragments (`hx-get`)."""
    offered = (
        control.attributes
        for control in page.controls
        if not control.is_disabled and (control.tag == "a" or "hx-get" in control.attributes)
    )
    return [attributes.get("hx-get") or attributes.get("href") or "" for attributes in offered]


def post_targets(page: Page) -> list[str]:
    """Return the URLs to which forms and buttons post."""
    forms = [form for form in page.controls if form.tag == "form"]
    owners = {id(control): form for form in forms for control in form.controls}
    by_id = {form.attributes.get("id"): form for form in forms}
    targets = []
    for control in page.controls:
        if control.is_disabled or control.tag == "form":
            continue
        targets.append(control.attributes.get("hx-post"))
        if control.tag == "button" and control.attributes.get("type") != "button":
            form = by_id.get(control.attributes.get("form", "")) or owners.get(id(control))
            is_post = form is not None and form.attributes.get("method") == "post"
            action = form.attributes.get("action", "") if form is not None and is_post else None
            targets.append(control.attributes.get("formaction", action))
    return [target for target in targets if target is not None]


def addresses(role: str) -> list[str]:
    names = "dashboard routes simulate matrix catalogue providers services agents artifacts requests usage config"
    names += " history audit compare users settings password_change alerts documents"
    return [
        *(reverse(name) for name in names.split()),
        *("/routes/planning/", "/routes/design/", "/providers/echo/", "/services/text-model/", "/agents/text-agent/"),
        *([reverse("tokens")] if role == "administrator" else ()),
        *(reverse("artifact", args=[artifact.pk]) for artifact in Artifact.objects.all()),
        *(reverse("request", args=[request.pk]) for request in RequestLog.objects.all()[:2]),
        *(reverse("revision", args=[revision.pk]) for revision in Revision.objects.all()),
    ]


def not_allowed(role: UserRole, url: str, right: Right, page_url: str) -> bool:
    path = url.split("?")[0].split("#")[0] or page_url
    if not path.startswith("/"):
        return False
    try:
        name = resolve(path).view_name
    except Resolver404:
        return False
    return ":" not in name and not right_on_page(role, name) & right


@pytest.mark.parametrize("role", ["viewer", "editor", "administrator"])
def test_pages_offer_no_control_that_the_role_may_not_use(
    role: str, demo: None, viewer: Client, editor: Client, admin: Client
) -> None:
    """A role may open the pages to which links lead, and may post to the URLs of forms and buttons."""
    browser = {"viewer": viewer, "editor": editor, "administrator": admin}[role]
    refused = []
    for page_url in addresses(role):
        answer = browser.get(page_url)
        assert answer.status_code == 200, page_url
        page = Page(answer)
        for urls, right in ((post_targets(page), Right.TRY | Right.CHANGE), (link_targets(page), Right.SEE)):
            refused += [f"{page_url} offers {url}" for url in urls if not_allowed(UserRole(role), url, right, page_url)]
    assert not refused, "\n".join(refused)
