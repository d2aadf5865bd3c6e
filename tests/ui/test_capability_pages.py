"""The pages of providers, services and agents in the browser: their main acts, and what axe says of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing_admin.demo import load

pytestmark = [pytest.mark.ui, pytest.mark.django_db(transaction=True, databases=["default", "logs"])]
ADDRESSES = (
    "/providers/",
    "/providers/echo/",
    "/new/provider/",
    "/new/provider/?preset=deepseek",
    "/providers/echo/models/",
    "/matrix/",
    "/services/",
    "/services/vision-model/",
    "/new/service/",
    "/agents/",
    "/agents/vision-agent/",
    "/new/agent/",
)
VARIANTS = [(1280, "light", "en"), (390, "dark", "en")]


@pytest.mark.parametrize(("width", "scheme", "language"), VARIANTS)
def test_every_capability_page_is_readable_by_everybody(
    new_page: Callable[..., Any],
    sign_in: Callable[[Any], Any],
    axe: Callable[[Any], list[str]],
    shot: Callable[[Any, str], Path],
    width: int,
    scheme: str,
    language: str,
) -> None:
    """axe finds nothing against WCAG 2.2 AA on any of them, and none scrolls sideways."""
    load.load()
    page = sign_in(new_page(width, scheme, language))
    found = []
    for address in ADDRESSES:
        page.goto(address)
        name = address.strip("/").replace("/", "-").replace("?", "-").replace("=", "-")
        shot(page, f"cap-{name}-{width}-{scheme}-{language}")
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            found.append(f"{address} scrolls sideways")
        found += [f"{address} {violation}" for violation in axe(page)]
    assert found == []
