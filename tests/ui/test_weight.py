"""Which files a page loads, and how the page is printed."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("first_start"),
]


def test_only_editable_route_pages_load_the_drag_library(admin_page: Any) -> None:
    urls: list[str] = []
    admin_page.on("request", lambda request: urls.append(request.url))
    for path in ("/", "/requests/", "/matrix/", "/routes/"):
        admin_page.goto(path)
        expect(admin_page.locator("h1")).to_be_visible()
    assert [url for url in urls if "Sortable" in url] == []
    assert len([url for url in urls if "htmx" in url and url.endswith(".js")]) <= 4
    with admin_page.expect_request("**/Sortable*"):
        admin_page.goto("/routes/design/")
    admin_page.wait_for_function("() => window.Sortable?.get(document.querySelector('[data-sortable]'))")


def test_printed_page_has_no_navigation_and_uses_light_colours(admin_page: Any) -> None:
    admin_page.emulate_media(media="print", color_scheme="dark")
    admin_page.goto("/providers/")
    for selector in (".side", ".topbar", ".bottombar", "#main .btn", "#main .filters"):
        for element in admin_page.locator(selector).all():
            expect(element).to_be_hidden()
    expect(admin_page.locator("h1")).to_be_visible()
    expect(admin_page.locator("#main table")).to_be_visible()
    assert admin_page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert admin_page.evaluate("getComputedStyle(document.documentElement).color") == "rgb(29, 27, 24)"
