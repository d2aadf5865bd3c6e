"""Browser tests in the system's Chromium. A console error, page error or policy violation fails the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from routing_admin.models import Installation
from tests.cast import load_demo, open_browser

FOLDER = Path(__file__).parent
SHOTS = FOLDER / "shots"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Browser programs in order of preference. The first opens no windows, and needs a fifth less CPU time per page."""
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
REASON = "Chromium is missing; on Debian: apt-get install chromium-headless-shell fonts-noto-core fonts-wqy-microhei"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]
# htmx logs these errors if a new request replaces an old one (`hx-sync`). For a real network error, it also logs
# sendError.
REPLACED = ("htmx:sendAbort", "htmx:afterRequest")
LISTENER = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy violation: " + event.violatedDirective + " " + event.blockedURI));
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium once per test run. If it is missing, skip the tests, or fail them if CI=true."""
    if not CHROMIUM:
        if os.environ.get("CI") == "true":
            pytest.fail(REASON)
        pytest.skip(REASON)
    from playwright.sync_api import sync_playwright

    # Because Playwright's event loop runs in this thread, Django would refuse database queries.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def new_page(browser: Any, live_server: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page; its options are width, colour scheme and scripting.

    A console error fails the test unless it is in the page's `expected_complaints`.
    """
    complaints: list[str] = []
    contexts: list[Any] = []

    def make(width: int = 1280, scheme: str = "light", language: str = "en", **options: Any) -> Any:
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            locale=language,
            permissions=["clipboard-write"],  # The headless shell does not grant clipboard access by default.
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        opened = context.new_page()
        if options.get("java_script_enabled", True):
            opened.add_init_script(LISTENER)
        opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.expected_complaints = []
        opened.complaints = complaints
        return opened

    yield make
    allowed = (*REPLACED, *(text for context in contexts for page in context.pages for text in _allowed(page)))
    unexpected = [text for text in complaints if not any(part in text for part in allowed)]
    for context in contexts:
        context.close()  # Closing aborts pending requests, which htmx logs as errors.
    assert unexpected == []


def _allowed(page: Any) -> list[str]:
    """Return the console errors that the test expects and has added to `page.expected_complaints`."""
    return list(getattr(page, "expected_complaints", []))


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    return new_page()


@pytest.fixture
def sign_in(admin_account: Any, live_server: Any) -> Callable[[Any], Any]:
    """Return a function that gives a page the administrator's session."""

    def sign_in_page(page: Any) -> Any:
        client = open_browser(admin_account)
        name = next(iter(client.cookies))
        page.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
        return page

    return sign_in_page


@pytest.fixture
def admin_page(page: Any, sign_in: Callable[[Any], Any]) -> Any:
    return sign_in(page)


@pytest.fixture
def first_start(db: None) -> None:
    """Set up an installation as after its first start, with the demo.

    The row of the installation itself is added, because tests empty the table.
    """
    Installation.objects.get_or_create(id=1)
    load_demo()


@pytest.fixture
def gallery(settings: Any) -> None:
    """Add the templates that show every part of the frame. They are only used in tests, at the URLs of
    frame_urls.py.
    """
    options = settings.TEMPLATES[0]
    settings.TEMPLATES = [{**options, "DIRS": [*options["DIRS"], FOLDER / "templates"]}]
    settings.FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]


@pytest.fixture
def axe() -> Callable[[Any], list[str]]:
    """Return a function that runs axe (WCAG 2.2 A and AA) on a page and returns a line for each violation."""
    from axe_playwright_python.sync_playwright import Axe

    def run(page: Any) -> list[str]:
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        results = Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
        return [
            f"{violation['id']}: {node['html'][:160]}"
            for violation in results.response["violations"]
            for node in violation["nodes"]
        ]

    return run


@pytest.fixture
def shot() -> Callable[[Any, str], Path]:
    """Return a function that saves a screenshot of the whole page in tests/ui/shots/. They are not committed."""

    def take_shot(page: Any, name: str) -> Path:
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        return path

    return take_shot
