"""A provider's key in a browser: only the fields for the chosen source of the key are shown."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.ui,
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
    pytest.mark.usefixtures("first_start"),
]
FIELDS = "#id_key, #id_key_variable, #id_env_name"


def visible_fields(page: Any) -> list[str]:
    return [str(element.get_attribute("name")) for element in page.locator(FIELDS).all() if element.is_visible()]


def test_each_key_source_shows_only_the_required_field(admin_page: Any) -> None:
    admin_page.goto("/providers/openai/")
    assert visible_fields(admin_page) == []
    choices = admin_page.locator("form[data-draft]")  # Another form on the page has the same labels.
    choices.get_by_label("Store a new key, encrypted").check()
    assert visible_fields(admin_page) == ["key"]
    choices.get_by_label("Read it from the environment").check()
    assert visible_fields(admin_page) == ["key_variable", "env_name"]
    choices.get_by_label("No key is needed").check()
    assert visible_fields(admin_page) == []


def test_preset_key_is_stored_for_the_existing_provider_without_a_key(admin_page: Any, axe: Any) -> None:
    admin_page.goto("/new/provider/")
    admin_page.get_by_role("link", name="OpenAI no key").click()
    expect(admin_page.locator("h2").first).to_contain_text("openai already exists, without a key")
    assert axe(admin_page) == []
    admin_page.fill("#id_key", "sk-a-new-one-of-mine")
    admin_page.get_by_role("button", name="Save key").click()
    expect(admin_page.locator("h1")).to_have_text("Models of openai")
