"""Every part of the frame (the layout that all pages share), checked by axe in both themes, widths and languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.ui,
    pytest.mark.urls("frame_urls"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("gallery"),
]
VARIANTS = [(1280, "light", "en"), (1280, "dark", "zh-Hans"), (390, "dark", "en"), (390, "light", "zh-Hans")]


@pytest.mark.parametrize(("width", "scheme", "language"), VARIANTS)
@pytest.mark.parametrize("address", ["/login/", "/dashboard/", "/nowhere/"])
def test_every_frame_component_is_accessible_in_every_theme(
    new_page: Callable[..., Any],
    sign_in: Callable[[Any], Any],
    axe: Callable[[Any], list[str]],
    shot: Callable[[Any, str], Path],
    address: str,
    width: int,
    scheme: str,
    language: str,
) -> None:
    page = new_page(width, scheme, language)
    page.expected_complaints.append("404")
    if address != "/login/":
        sign_in(page)
    page.goto(address)
    shot(page, f"{address.strip('/')}-{width}-{scheme}-{language}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.get_attribute("html", "lang") == language
    assert axe(page) == []
