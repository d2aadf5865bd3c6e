"""Correcting a file's type and encoding in a browser: with the keyboard, on the same page, and accessibly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from artifacts.library import store_bytes
from artifacts.models import Artifact
from capabilities.actors import SYSTEM

pytestmark = [pytest.mark.ui, pytest.mark.django_db(transaction=True, databases=["default", "logs"])]
VARIANTS = [(1280, "light", "en"), (390, "dark", "zh-Hans"), (1280, "dark", "zh-Hans"), (390, "light", "en")]
CHINESE = "季度报告：收入增长百分之十二，成本下降。\n" * 5


@pytest.fixture
def guessed_file(demo: None) -> Artifact:
    """Store a Chinese text file for which detection guesses the wrong encoding."""
    row = store_bytes(SYSTEM, CHINESE.encode("gb18030"), filename="notes.txt", owner="text-agent")
    Artifact.objects.filter(pk=row.pk).update(encoding="big5", encoding_certain=False)
    return row


@pytest.mark.parametrize(("width", "scheme", "language"), VARIANTS)
def test_correction_form_and_errors_are_accessible(
    new_page: Callable[..., Any],
    sign_in: Callable[[Any], Any],
    axe: Callable[[Any], list[str]],
    shot: Callable[[Any, str], Path],
    guessed_file: Artifact,
    width: int,
    scheme: str,
    language: str,
) -> None:
    page = sign_in(new_page(width, scheme, language))
    page.expected_complaints.append("422")
    page.goto(f"/artifacts/{guessed_file.pk}/")
    page.locator("#correct-mime_type summary").click()
    page.locator("#id_mime_type").fill("png")
    page.locator("#correct-mime_type button").click()
    page.locator("#id_mime_type[aria-invalid=true]").wait_for()
    shot(page, f"correct-refused-{width}-{scheme}-{language}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert axe(page) == []


def test_file_can_be_corrected_by_keyboard_without_leaving_the_page(admin_page: Any, guessed_file: Artifact) -> None:
    page = admin_page
    page.goto(f"/artifacts/{guessed_file.pk}/")
    page.evaluate("window.same = true")
    page.locator("#guess_encoding").focus()
    page.locator("#guess_encoding").select_option("gb18030")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Models receive the file as it is shown now.").wait_for()
    expect(page.locator("pre.peek")).to_contain_text("季度报告：收入增长百分之十二")
    expect(page.locator("details.delivery[open] .said").first).to_contain_text("季度报告")
    page.locator("#correct-mime_type summary").focus()
    page.keyboard.press("Enter")
    page.locator("#id_mime_type").fill("image/png")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Restore the detected values").wait_for()
    expect(page.locator(".steps-found")).to_contain_text("image/png", use_inner_text=False)
    page.get_by_role("button", name="Restore the detected values").press("Enter")
    expect(page.locator(".note.warn")).to_contain_text("big5")
    assert page.evaluate("window.same")
    assert Artifact.objects.get(pk=guessed_file.pk).correction is None


def test_correction_form_works_without_javascript(
    new_page: Callable[..., Any], sign_in: Any, guessed_file: Artifact
) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.goto(f"/artifacts/{guessed_file.pk}/")
    page.locator("#guess_encoding").select_option("gb18030")
    with page.expect_navigation():
        page.get_by_role("button", name="Use this encoding").click()
    assert page.url.endswith(f"/artifacts/{guessed_file.pk}/")
    assert "季度报告" in page.locator("pre.peek").inner_text()
