"""CSRF protection: every page that accepts a form rejects requests without the CSRF token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter

from capabilities.core.permissions import MACHINE_NAMESPACES, Right, is_offered
from tests.cast import open_browser

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def pages(patterns: list[URLPattern | URLResolver]) -> Iterator[tuple[str, str]]:
    """Yield the name and path of every page. APIs are left out, since they use no session."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from () if pattern.namespace in MACHINE_NAMESPACES else pages(pattern.url_patterns)
        else:
            kinds = pattern.pattern.converters.items()
            arguments = {name: 987 if isinstance(kind, IntConverter) else "unknown" for name, kind in kinds}
            yield str(pattern.name), reverse(str(pattern.name), kwargs=arguments)


FORMS = {
    name: address for name, address in pages(get_resolver().url_patterns) if is_offered(name, Right.TRY | Right.CHANGE)
}
"""All pages that accept a form according to the permission table."""


def test_pages_with_forms_are_found() -> None:
    """If no pages were found, the next test would pass without testing anything."""
    assert len(FORMS) > 50
    assert {"login", "logout", "user_invite", "key_issue", "provider_new", "config_import", "restore"} <= FORMS.keys()


@pytest.mark.parametrize("name", FORMS)
def test_form_without_csrf_token_is_rejected(name: str, admin_account: object) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin_account)  # type: ignore[arg-type]
    for headers in ({}, {"HX-Request": "true"}):
        answer = browser.post(FORMS[name], {"name": "x"}, headers=headers)
        assert (answer.status_code, "Form expired" in answer.content.decode()) == (403, True)


def test_csrf_token_of_another_browser_is_rejected(admin_account: object) -> None:
    browser, other_browser = Client(enforce_csrf_checks=True), Client(enforce_csrf_checks=True)
    browser.force_login(admin_account)  # type: ignore[arg-type]
    other_browser.get(reverse("login"))
    answer = browser.post(reverse("set_theme"), {"csrfmiddlewaretoken": other_browser.cookies["csrftoken"].value})
    assert answer.status_code == 403


def test_form_with_csrf_token_is_accepted(admin_account: object) -> None:
    browser = open_browser(admin_account, enforce_csrf_checks=True)
    browser.get("/")
    answer = browser.post(
        reverse("set_theme"), {"csrfmiddlewaretoken": browser.cookies["csrftoken"].value, "theme": "dark"}
    )
    assert answer.status_code in {200, 204, 302}
