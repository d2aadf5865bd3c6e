"""Drifts and probe transcripts in a browser: accessibility, and resolving a drift.

A drift is evidence that a model cannot read content that its service says it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from capabilities.models import Drift, ProbeTranscript

pytestmark = [pytest.mark.ui, pytest.mark.django_db(transaction=True, databases=["default", "logs"])]

VARIANTS = [(1440, "dark", "en"), (390, "light", "zh-Hans")]
CELL = {"provider": "echo", "model": "echo-vision", "capability": "vision"}


@pytest.fixture(autouse=True)
def _create_doubt(first_start: None) -> None:
    """Set up a model that rejected an image, although a probe had shown that it reads images."""
    Drift.objects.create(**CELL, kind="refused", at=timezone.now(), request="r1", status=400)
    readings = (("LANTERN", "LANTERN", "right"), ("WALNUT", "It says WALNUT.", "right"), ("", "NONE", "denied"))
    counts = {"fault": "", "status": None, "message": "", "promptTokens": 300, "completionTokens": 4, "cost": None}
    ProbeTranscript.objects.create(
        **CELL,
        decided=True,
        outcome="yes",
        reason="read_both",
        at=timezone.now(),
        actor="nightly probe",
        question="Which word is written in this image?",
        mime_type="image/png",
        exchanges=[{"word": word, "text": text, "reading": reading, **counts} for word, text, reading in readings],
    )


@pytest.mark.parametrize(("width", "scheme", "language"), VARIANTS)
def test_capability_doubts_and_probe_transcripts_are_accessible(
    new_page: Callable[..., Any],
    sign_in: Callable[[Any], Any],
    axe: Callable[[Any], list[str]],
    width: int,
    scheme: str,
    language: str,
) -> None:
    page = sign_in(new_page(width, scheme, language))
    problems = []
    for address in ("/services/echo-vision/", "/", "/matrix/", "/routes/", "/routes/design/"):
        page.goto(address)
        page.evaluate(
            "document.querySelectorAll('[aria-labelledby=probes] details').forEach((element) => element.open = true)"
        )
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            problems.append(f"{address} scrolls sideways")
        problems += [f"{address} {violation}" for violation in axe(page)]
    assert problems == []


def test_doubt_can_be_resolved_on_the_dashboard_and_undone_from_the_toast(admin_page: Any) -> None:
    admin_page.goto("/")
    admin_page.get_by_role("button", name="It does not read images").click()
    admin_page.get_by_text("echo-vision no longer reads vision").wait_for()
    assert not admin_page.get_by_text("echo-vision should read images").is_visible()
    admin_page.get_by_role("button", name="Undo").click()
    admin_page.get_by_text("echo-vision should read images").wait_for()
