"""No page shows a user a form, button or link that the user's role may not use."""

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
    """Return the URLs that links lead to and that elements load."""
    offered = (
        one.attributes
        for one in page.controls
        if not one.is_disabled and (one.tag == "a" or "hx-get" in one.attributes)
    )
    return [attributes.get("hx-get") or attributes.get("href") or "" for attributes in offered]


    @property
    def targets(self) -> list[str]:
        actions = (self.forms.get(form) if target is None else target for form, target in self.buttons)
        return [action for action in actions if action is not None]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        self.blanks += tag == "template"  # a script fills a template before the template is shown
        if self.blanks or "disabled" in has:
            return
        if tag == "a" or "hx-get" in has:
            self.links.append(has.get("hx-get") or has.get("href") or "")
        if tag == "form":
            self.open_form = has.get("id") or f"form {len(self.forms)}"
            if has.get("method") == "post":
                self.forms[self.open_form] = has.get("action") or ""
        elif "hx-post" in has:
            self.buttons.append(("", has["hx-post"]))
        if tag == "button" and has.get("type") != "button":
            self.buttons.append((has.get("form") or self.open_form, has.get("formaction")))

    def handle_endtag(self, tag: str) -> None:
        self.blanks -= tag == "template"
        if tag == "form":
            self.open_form = ""


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
def test_no_page_offers_what_its_reader_may_not_do(
    role: str, demo: None, viewer: Client, editor: Client, admin: Client
) -> None:
    browser = {"viewer": viewer, "editor": editor, "administrator": admin}[role]
    refused = []
    for page_url in addresses(role):
        answer = browser.get(page_url)
        assert answer.status_code == 200, page_url
        page = Page(answer)
        for urls, right in ((post_targets(page), Right.TRY | Right.CHANGE), (link_targets(page), Right.SEE)):
            refused += [f"{page_url} offers {url}" for url in urls if not_allowed(UserRole(role), url, right, page_url)]
    assert not refused, "\n".join(refused)
