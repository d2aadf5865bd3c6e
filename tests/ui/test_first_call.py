"""From a new agent key to its first call, on a single page in a browser."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from routing_admin.request_log.journal import journal

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("first_start"),
]


def send_call(url: str, key: str, model: str) -> int:
    """Send a call with the key and return the HTTP status. The call is logged."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body, headers)) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    journal().flush()
    return int(status)


def test_first_call_with_a_new_key_appears_without_a_reload(admin_page: Any, live_server: Any) -> None:
    page = admin_page
    page.goto("/agents/text-agent/")
    page.get_by_role("button", name="Issue a key").first.click()
    page.locator("#issue").get_by_role("button", name="Issue").click()
    panel = page.locator("#first-call")
    panel.get_by_text("Waiting for the first call").wait_for()
    assert panel.get_attribute("aria-live") == "polite"
    key = page.locator("#issued").inner_text().strip()
    assert key in page.locator("#curl").inner_text()
    assert send_call(live_server.url, key, "planing") == 404
    panel.get_by_text("A call arrived and got no answer").wait_for()
    assert "task:planning" in panel.inner_text()
    assert send_call(live_server.url, key, "task:planning") == 200
    panel.get_by_text("The first call arrived and was answered").wait_for()
    assert "echo/echo-text" in panel.inner_text()
    assert page.locator("#issued").inner_text().strip() == key  # The page still shows the key.
    public = key.split("_")[1]
    page.locator("#agent-keys tr", has_text=public).get_by_text(
        "Working", exact=True
    ).wait_for()  # The key's state is no longer “Never used”.
