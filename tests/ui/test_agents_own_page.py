"""An agent's shared page.

An administrator creates a link, someone without an account uses it, and the administrator revokes it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from routing_admin.models import AttemptLog, RequestLog

pytestmark = [pytest.mark.ui, pytest.mark.django_db(databases=["default", "logs"], transaction=True)]


def log_call() -> None:
    """Log a call by the agent in which a description replaced an image."""
    started_at = timezone.now() + timedelta(minutes=1)
    chain = [{"name": "echo/echo-text", "code": 200, "tone": "ok"}]
    facts = {"surface": "v1", "outcome": "ok", "task_type": "design", "chain": chain, "model": "echo-text"}
    row = RequestLog.objects.create(id="req_shown", agent="text-agent", started_at=started_at, status=200, **facts)
    files = [{"filename": "plan.png", "kind": "image", "shown": "described", "sentence": "the model reads text"}]
    facts = {"provider": "echo", "model": "echo-text", "outcome": "ok", "status": 200}
    AttemptLog.objects.create(request=row, position=0, at=started_at, deliveries=files, **facts)


def make_link(admin_page: Any) -> str:
    admin_page.goto("/agents/text-agent/")
    admin_page.get_by_role("button", name="Issue a page link").click()
    admin_page.get_by_label("Recipient").fill("Mei")
    admin_page.locator("#share").get_by_role("button", name="Issue a page link").click()
    return "/agent-page/" + str(admin_page.locator("#link").inner_text()).split("/agent-page/")[1]


def test_shared_link_opens_the_agent_page_without_an_account_until_revoked(
    first_start: None, admin_page: Any, new_page: Callable[..., Any], axe: Callable[[Any], list[str]]
) -> None:
    link = make_link(admin_page)
    reader = new_page(width=390, scheme="dark")
    reader.goto(link)
    assert reader.locator("h1").inner_text() == "text-agent"
    assert reader.get_by_text("No call yet").is_visible()
    log_call()
    reader.reload()
    reader.get_by_role("link", name="design").click()
    reader.get_by_role("heading", name="Call", exact=True, level=1).wait_for()
    assert reader.locator("p.lead").inner_text() == "echo-text answered design without the image"
    assert reader.get_by_text("plan.png").first.is_visible()
    assert axe(reader) == []
    reader.get_by_role("link", name="text-agent").click()
    reader.get_by_role("heading", name="text-agent", level=1).wait_for()
    assert axe(reader) == []
    admin_page.goto("/agents/text-agent/")
    admin_page.locator("section", has_text="Links to its page").get_by_role("button", name="Revoke").first.click()
    admin_page.locator("dialog:popover-open").get_by_role("button", name="Revoke").click()
    admin_page.get_by_text("The link for Mei is revoked").first.wait_for()
    reader.expected_complaints.append("404")
    reader.reload()
    assert reader.locator("h1").inner_text() == "Invalid link"
    # Opening the agent's page sets no cookie.
    assert reader.context.cookies() == []


def test_language_theme_snippets_and_copying_work_on_the_shared_agent_page(
    first_start: None, admin_page: Any, new_page: Callable[..., Any]
) -> None:
    reader = new_page()
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader.goto(make_link(admin_page))
    for name, expected in (("OpenAI JS", "new OpenAI("), ("Anthropic SDK", "Anthropic("), ("LangChain", "ChatOpenAI(")):
        reader.get_by_text(name, exact=True).first.click()
        panel = reader.locator(".tabset > .panel:visible")
        assert panel.count() == 1
        assert expected in panel.inner_text()
    reader.locator(".tabset > .panel:visible button").click()
    reader.locator(".toast", has_text="Copied").wait_for()
    assert "ChatOpenAI(" in reader.evaluate("navigator.clipboard.readText()")
    reader.get_by_role("button", name="简体中文").click()
    reader.get_by_role("button", name="深色").click()
    expect(reader.locator("html")).to_have_attribute("data-theme", "dark")
    assert reader.get_by_role("heading", name="最近的调用").is_visible()
