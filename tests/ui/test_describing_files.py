"""In a browser: a file that a model cannot read is previewed, described by another model, and used in a request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from artifacts.library import store_bytes
from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.console.routes.actions import save_route
from routing_admin.console.settings.actions import set_content_policy
from routing_admin.models import TaskRoute
from tests.describing.describers import DESCRIPTION, POLICY, describing_lab, received_bodies
from tests.gateway.plane import PNG, chat_body, image, logged

pytestmark = [pytest.mark.ui, pytest.mark.django_db(transaction=True, databases=["default", "logs"])]
VARIANTS = [(1440, "light", "en"), (390, "dark", "zh-Hans")]


def disable_describing() -> None:
    describe = TaskRoute.objects.get(task_type="describe")
    describe.enabled = False
    save_route(SYSTEM, describe, expected=describe.version)
    snapshot.refresh()


def send_call(page: Any, key: str) -> str:
    """Send an agent's call with an image and return the request id."""
    headers = {"authorization": f"Bearer {key}"}
    body = chat_body(image(), model="task:blind", language="en")
    answer = page.request.post("/v1/chat/completions", headers=headers, data=body)
    assert answer.headers["x-routing-adaptation"] == "image=described:by_model"
    return str(logged(answer.headers["x-request-id"]).pk)


def test_previewed_file_is_described_once_and_the_description_is_reused(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], key: str
) -> None:
    with describing_lab() as lab:
        set_content_policy(SYSTEM, POLICY)
        snapshot.refresh()
        row = store_bytes(SYSTEM, PNG, filename="cat.png", declared="image/png")
        page = sign_in(new_page(1440))
        page.goto(f"/artifacts/{row.pk}/?service=blind&language=en")
        card = page.locator("#d-blind")
        expect(card).to_contain_text("Would be described by seer")
        expect(card.locator(".said")).to_contain_text("[Here seer describes the file; it was not asked yet]")
        assert lab.requests == []
        card.get_by_role("button", name="Ask seer now").click()
        expect(card).to_contain_text("seer described the file; its words are kept.")
        expect(card.locator(".said")).to_contain_text(f"> {DESCRIPTION}")
        expect(card.get_by_role("button", name="Ask seer now")).to_have_count(0)
        request = send_call(page, key)
        assert len(received_bodies(lab, "seer")) == 1
        assert f"> {DESCRIPTION}" in str(received_bodies(lab, "blind")[0])
    page.goto(f"/requests/{request}/")
    expect(page.locator("#main")).to_contain_text("blind")


@pytest.mark.parametrize(("width", "scheme", "language"), VARIANTS)
def test_pages_with_described_files_are_accessible(
    new_page: Callable[..., Any],
    sign_in: Callable[[Any], Any],
    axe: Callable[[Any], list[str]],
    shot: Callable[[Any, str], Path],
    key: str,
    width: int,
    scheme: str,
    language: str,
) -> None:
    problems = []
    with describing_lab():
        set_content_policy(SYSTEM, POLICY)
        snapshot.refresh()
        row = store_bytes(SYSTEM, PNG, filename="cat.png", declared="image/png")
        page = sign_in(new_page(width, scheme, language))
        request = send_call(page, key)
        pages = {
            "kept": f"/artifacts/{row.pk}/?service=blind&language=en",
            "asked": f"/artifacts/{row.pk}/?service=blind&language=zh",
            "request": f"/requests/{request}/",
            "missing": f"/artifacts/{row.pk}/?service=blind",
            "route": "/routes/blind/",
            "routes": "/routes/",
        }
        for name, address in pages.items():
            if name == "missing":
                disable_describing()
            page.goto(address)
            shot(page, f"describing-{name}-{width}-{scheme}-{language}")
            if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
                problems.append(f"{name} scrolls sideways")
            problems += [f"{name}: {problem}" for problem in axe(page)]
    assert problems == []
