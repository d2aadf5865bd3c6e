"""Browser tests: the system's Chromium, pages that fail on any console error, page error or policy violation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from routing_admin.models import Installation
from tests.cast import browser_of, load_demo

HERE = Path(__file__).parent
SHOTS = HERE / "shots"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
REASON = "Chromium is not installed; on Debian: apt-get install chromium fonts-noto-core fonts-wqy-microhei"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]
REPLACED = ("htmx:sendAbort", "htmx:afterRequest")  # hx-sync replaced a request; a fault adds sendError
LISTENER = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy violation: " + event.violatedDirective + " " + event.blockedURI));
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium for the whole run; without it a skip, and a failure where CI=true promises it."""
    if not CHROMIUM:
        if os.environ.get("CI") == "true":
            pytest.fail(REASON)
        pytest.skip(REASON)
    from playwright.sync_api import sync_playwright

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps a loop in this thread, the ORM sees it
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def new_page(browser: Any, live_server: Any) -> Iterator[Callable[..., Any]]:
    """Makes pages with given width, colour scheme and scripting; complaints of any of them fail the test at its end."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def make(width: int = 1280, scheme: str = "light", language: str = "en", **options: Any) -> Any:
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            locale=language,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        made = context.new_page()
        if options.get("java_script_enabled", True):
            made.add_init_script(LISTENER)
        made.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        made.on("pageerror", lambda error: complaints.append(str(error)))
        made.expected_complaints = []
        made.complaints = complaints
        return made

    yield make
    allowed = (*REPLACED, *(text for context in contexts for page in context.pages for text in _allowed(page)))
    found = [text for text in complaints if not any(part in text for part in allowed)]
    for context in contexts:
        context.close()  # which aborts requests under way, and htmx complains of that
    assert found == []


def _allowed(page: Any) -> list[str]:
    """A test that provokes a refusal says so: `page.expected_complaints.append("409")`."""
    return list(getattr(page, "expected_complaints", []))


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    """A page of 1280 pixels, light, English, nobody signed in."""
    return new_page()


@pytest.fixture
def sign_in(admin_account: Any, live_server: Any) -> Callable[[Any], Any]:
    """Gives a page the administrator's session and returns it."""

    def give(page: Any) -> Any:
        client = browser_of(admin_account)
        name = next(iter(client.cookies))
        page.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
        return page

    return give


@pytest.fixture
def admin_page(page: Any, sign_in: Callable[[Any], Any]) -> Any:
    """A page with the administrator signed in."""
    return sign_in(page)


@pytest.fixture
def first_start(db: None) -> None:
    """An installation as after the first start: its own row, which an emptied database lacks, and the demo."""
    Installation.objects.get_or_create(id=1)
    load_demo()


@pytest.fixture
def gallery(settings: Any) -> None:
    """Adds the test-only templates that show every part of the frame (URLs in frame_urls.py)."""
    options = settings.TEMPLATES[0]
    settings.TEMPLATES = [{**options, "DIRS": [*options["DIRS"], HERE / "templates"]}]
    settings.FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]


@pytest.fixture
def axe() -> Callable[[Any], list[str]]:
    """Runs axe (WCAG 2.2 A and AA) on a page; returns its violations in one line each."""
    from axe_playwright_python.sync_playwright import Axe

    def run(page: Any) -> list[str]:
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        results = Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
        return [f"{one['id']}: {node['html'][:160]}" for one in results.response["violations"] for node in one["nodes"]]

    return run


@pytest.fixture
def shot() -> Callable[[Any, str], Path]:
    """Keeps a picture of the whole page under tests/ui/shots/, which is not committed."""

    def take(page: Any, name: str) -> Path:
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        return path

    return take
