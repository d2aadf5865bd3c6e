"""Check every page in both languages, widths and themes, with one server, one browser and one sign-in."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter

from routing_admin.console.base.context import NAVIGATION
from tests.processes import free_port, wait_for_success
from tests.ui.boxes import WIDTHS as MEASURED
from tests.ui.boxes import measure
from tests.ui.large import OFFERED, PASSWORD, WIDE, object_name

ROOT = Path(__file__).parents[2]
LARGE = os.environ.get("LARGE_INSTALLATION", "")
"""The folder of a full-size installation, set by `make crawl`. If it is empty, a small installation is made."""
LANGUAGES = {"en": "en", "zh-hans": "zh-Hans"}
WIDTH_AND_THEME = {"en": (1280, "light"), "zh-hans": (390, "dark")}
"""The window width and the theme with which a page is loaded in each language.

For other widths, the window is resized.
"""
NARROW_AND_WIDE = (390, 1280)
"""The widths at which a page is loaded. At each width, the test focuses every control of the page."""

CALM = 0.02
"""The maximum sum of layout shifts while a page loads. On the web, up to 0.1 counts as good."""
HEAVIEST, TALLEST = 100_000, 10_000
"""Maximum size of a page in bytes before compression, and maximum height in pixels at any width.

Both apply, however much data the installation contains.
"""
HEAVIER = {"matrix": 103_000}
"""Pages that may be larger. The matrix has a switch in each of its 225 cells."""
GAP = re.compile(r".{,9}[。，；：] [\u4e00-\u9fff].{,9}")
"""Matches a superfluous space after Chinese punctuation. Its characters already include the space."""

MACHINES = {"agents-api", "gateway", "probes", "admin"}
"""URL namespaces that contain no pages: their responses are JSON or text, and are tested elsewhere."""

FILES = {"artifact_raw", "artifact_thumbnail", "audit_export", "config_export", "usage_csv"}
"""URLs that return a file."""

LEADS_ON = {"config_import", "set_language"}
"""URLs that redirect to another page."""

UNCONFIGURED = {"openid_connect_callback", "feishu_callback", "dingtalk_callback", "weixin_callback"}
"""Pages that exist only if their identity provider is configured. They are tested in tests/identity."""

FRAGMENTS = {
    *("drill_banner", "first_call", "matrix_row", "matrix_column", "options", "requests_newer", "requests_words"),
}
"""URLs that return part of a page. Each is tested with its page."""

PAGES: dict[str, str] = {
    "agent": "/agents/vision-agent/",
    "agent_new": "",
    "agents": "",
    "alerts": "",
    "alias": "",
    "artifact": "/artifacts/ → /artifacts/",
    "artifact_compare": "/artifacts/ → /artifacts/ + compare/",
    "artifacts": "",
    "audit": "",
    "catalogue": "",
    "catalogue_edition": "/matrix/catalogue/1/",
    "compare": "/history/compare/?from=1&to=2",
    "config": "",
    "dashboard": "",
    "document": "/docs/runbook/disk-full/",
    "documents": "",
    "find": "/find/?q=echo",
    "drill": "/providers/echo/drill/",
    "history": "",
    "join": "the invitation",
    "login": "",
    "matrix": "",
    "own_page": "the link",
    "own_call": "the link → its first call",
    "password_change": "",
    "provider": "/providers/echo/",
    "provider_models": "/providers/echo/models/",
    "provider_new": "",
    "providers": "",
    "request": "/requests/ → /requests/",
    "requests": "",
    "requests_volume": "",
    "restore": "/history/1/restore/",
    "revision": "/history/1/",
    "route": "/routes/design/",
    "route_new": "",
    "routes": "",
    "service": "/services/vision-model/",
    "service_new": "",
    "services": "",
    "settings": "",
    "simulate": "/simulate/?task=design",
    "usage": "",
    "budgets": "",
    "tokens": "",
    "user": "/users/ → /users/",
    "users": "",
}
"""Maps each page to its URL, or to an empty string if the URL follows from the page's name.

`list → beginning` means the first link on the list's page that begins like this, and `+ suffix` is appended to it.
"""

OUTSIDE = {"login", "join", "own_page", "own_call"}
"""Pages that visitors see without an account."""

EXTRA = {
    "agent, wide": f"/agents/{object_name('agent', 0)}/",
    "artifact, wide": "/artifacts/?q=csv → /artifacts/",
    "models, 340": "/providers/echo/models/",
    "provider, from a preset": "/new/provider/?preset=deepseek",
    "provider, wide": f"/providers/{object_name('provider', 0)}/",
    "request, wide": f"/requests/req_{WIDE[:60]}/",
    "requests, wide": f"/requests/?q=task:{object_name('task', 0)}",
    "route, wide": f"/routes/{object_name('task', 0)}/",
    "service, wide": f"/services/{object_name('service', 0)}/",
    "simulate, wide": f"/simulate/?task={object_name('task', 0)}",
    "artifacts, nothing found": "/artifacts/?q=nothing-has-this-name",
    "requests, nothing found": "/requests/?q=task:nothing-has-this-name",
    "documents, found": "/docs/?q=disk",
    "find, before anything is typed": "/find/",
    "find, wide": f"/find/?q={object_name('service', 0)[:60]}",
    "not found": "/no-such-page/",
}
"""Further states of some pages: with the longest names, with the most choices, or without any results."""

SHIFTS = """
localStorage.clear();  // a form from which axe removed rows was kept as a draft, which moves the next page down
window.shifted = 0;
new PerformanceObserver((list) => list.getEntries().forEach((entry) => { window.shifted += entry.value; }))
  .observe({ type: "layout-shift", buffered: true });
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy violation: " + event.violatedDirective + " " + event.blockedURI));
"""
# Returns the focusable elements that another element covers after they are scrolled into view.
COVERED = """() => {
  const found = [];
  const hidden = ".sr, .seg input, .tabset > input, :disabled";
  for (const element of document.querySelectorAll("#main :is(a[href], button, input, select, textarea, summary)")) {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.matches(hidden)) continue;
    element.focus();
    const box = element.getClientRects()[0];
    if (!box || box.width < 2) continue;
    const hit = document.elementFromPoint(box.x + box.width / 2, box.y + Math.min(box.height / 2, 20));
    if (!hit || element.contains(hit) || hit.contains(element) || element.labels?.[0]?.contains(hit)) continue;
    const name = element.id || element.name || element.textContent.trim();
    found.push(name.slice(0, 60) + " under " + hit.outerHTML.slice(0, 60));
  }
  window.scrollTo(0, 0);
  return found;
}"""
SIZE = """() => [
  document.documentElement.scrollWidth - document.documentElement.clientWidth,
  document.documentElement.scrollHeight,
]"""
AXE = """async () => {
  document.querySelectorAll(":is(tr, li, option):nth-child(n+13)").forEach((element) => element.remove());
  const { violations } = await axe.run({ resultTypes: ["violations"], selectors: false, preload: false,
    runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] } });
  return violations.flatMap((rule) => rule.nodes.map((node) => rule.id + ": " + node.html.slice(0, 160)));
}"""
"""Of long lists, only the first twelve rows are checked, because the others look the same.

The other rows are removed first, because excluding them from axe's report would still take half of its time.
"""

pytestmark = pytest.mark.ui


@dataclass
class Visitor:
    """A browser window on one installation, its console errors, and two links.

    The links are an invitation and the link to an agent's own page.
    """

    page: Any
    complaints: list[str]
    invitation: str
    own_page: str
    axe: str

    def first_call(self) -> str:
        """Return the URL of the first call that the agent's own page lists."""
        self.page.goto(self.own_page)
        return str(self.page.locator("#main table a").first.get_attribute("href"))

    def address(self, name: str) -> str:
        """Return the URL of a page in this installation. For pages about objects, it is the first object's page."""
        url = EXTRA.get(name) or PAGES[name] or reverse(name)
        if name == "join":
            return self.invitation
        if name.startswith("own_"):
            return self.own_page if name == "own_page" else self.first_call()
        if " → " not in url:
            return url
        listing, selector_steps = url.split(" → ")
        beginning, _plus, end = selector_steps.partition(" + ")
        self.page.goto(listing)
        links = self.page.locator("#main a").evaluate_all("all => all.map((link) => link.getAttribute('href'))")
        return str(next(link for link in links if re.fullmatch(re.escape(beginning) + r"[\w.-]+/", link or ""))) + end


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return LARGE or str(tmp_path_factory.mktemp("every-page"))


@pytest.fixture(scope="module")
def installation(folder: str) -> Iterator[str]:
    """Create a large installation and serve it. Yield its URL."""
    port = free_port()
    command = [sys.executable, "-m", "tests.ui.large", "--data", folder, *([] if LARGE else ["--small"])]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    server = subprocess.Popen([*command, "--serve", str(port)], cwd=ROOT, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_success(f"{url}/readyz")
        yield url
    finally:
        server.terminate()
        server.wait(timeout=40)


@pytest.fixture(scope="module")
def visitor(browser: Any, installation: str) -> Iterator[Visitor]:
    """Yield a browser window in which the administrator is signed in, and has invited a user and shared an agent's
    page.
    """
    from axe_playwright_python.base import AXE_FILE_PATH  # type: ignore[import-untyped]

    context = browser.new_context(base_url=installation, locale="en", reduced_motion="reduce")
    page = context.new_page()
    page.add_init_script(SHIFTS)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto("/login/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_selector("#main")
    page.goto("/users/")
    page.click("button[popovertarget=invite]")
    page.fill("#main [name=username]", f"invited-{free_port()}")  # Each visitor invites a different user.
    page.locator("#main form", has=page.locator("[name=username]")).locator("button").last.click()
    invitation = page.locator("text=/join/").first
    invitation.wait_for()
    text = invitation.input_value() if invitation.evaluate("element => 'value' in element") else invitation.inner_text()
    link = re.search(r"/join/\S+", text)
    assert link is not None, text
    page.goto("/requests/?q=surface:v1+status:ok")
    agents = page.locator("#main tbody td:nth-child(2)").all_inner_texts()
    page.goto(f"/agents/{next(agent for agent in agents if re.fullmatch(r'[a-z-]+', agent))}/")
    page.click("button[popovertarget=share]")
    page.fill("#share [name=link-name]", "Mei")
    page.click("#share .primary")
    own_page = page.locator("#link").inner_text().removeprefix(installation)
    yield Visitor(page, complaints, link[0], own_page, Path(AXE_FILE_PATH).read_text())
    context.close()


def iterate_url_names(patterns: list[URLPattern | URLResolver]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of every URL, and arguments with which its view can be called."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace not in MACHINES:
                yield from iterate_url_names(pattern.url_patterns)
        elif pattern.name:
            kinds = pattern.pattern.converters.items()
            yield pattern.name, {key: 1 if isinstance(kind, IntConverter) else "x" for key, kind in kinds}


@pytest.mark.django_db(databases=["default", "logs"])
def test_every_url_is_checked_as_a_page_or_rejects_get(admin: Client) -> None:
    """Each URL is a page in the table above, a file, a part of a page or a redirect, or it rejects GET."""
    missing = []
    for name, arguments in iterate_url_names(get_resolver().url_patterns):
        if name in PAGES or name in FILES or name in FRAGMENTS:
            continue
        expected = 302 if name in LEADS_ON else 404 if name in UNCONFIGURED else 405
        if admin.get(reverse(name, kwargs=arguments)).status_code != expected:
            missing.append(name)
    assert missing == []


def test_every_page_highlights_an_entry_of_the_navigation() -> None:
    """A page without a menu entry belongs to the entry of another page. Only Find, which opens from everywhere, does
    not.
    """
    marked = {name for _label, entries in NAVIGATION for entry in entries for name in (entry.name, *entry.within)}
    assert set(PAGES) - OUTSIDE - marked == {"find"}


@pytest.mark.parametrize("name", [*PAGES, *EXTRA])
def test_page_passes_all_checks_in_each_language_theme_and_width(
    name: str, visitor: Visitor, installation: str
) -> None:
    """The test checks status 200, title, one heading, language, axe violations, console errors, horizontal scrolling,
    height, covered controls, layout shifts, gaps in Chinese text, and at four widths that no text or control is cut
    off, overlaps another or leaves its box.
    """
    page, faults = visitor.page, []
    address = visitor.address(name)
    cookies = page.context.cookies()
    page.goto("about:blank")  # Stop loading the previous page.
    if name in OUTSIDE:
        page.context.clear_cookies()
    for language, (width, theme) in WIDTH_AND_THEME.items():
        page.context.add_cookies([{"name": "django_language", "value": language, "url": installation}])
        page.emulate_media(color_scheme=theme)
        visitor.complaints.clear()
        page_faults = []
        # Layout shifts may occur at one width only, so `make crawl` also loads the page at the other width.
        for loaded in (*(other for other in NARROW_AND_WIDE if LARGE and other != width), width):
            page.set_viewport_size({"width": loaded, "height": 900})
            answer = page.goto(address)
            page_faults += _find_document_faults(page, answer, LANGUAGES[language], 404 if name == "not found" else 200)
        if (size := len(answer.body())) > HEAVIER.get(name, HEAVIEST):
            page_faults.append(f"{size:,} bytes")
        if name == "models, 340":
            _offer_models(page)
        for measured in MEASURED:
            page_faults += [*measure(page, measured), *_find_size_faults(page)]
            if measured in NARROW_AND_WIDE:
                page_faults += [f"{measured}: {fault}" for fault in page.evaluate(COVERED)]
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(visitor.axe)
        page_faults += page.evaluate(AXE)  # This check is last, because it removes rows.
        faults += [f"{language}: {fault}" for fault in page_faults]
        faults += [text for text in visitor.complaints if "404" not in text or name != "not found"]
    page.context.clear_cookies()
    page.context.add_cookies(cookies)
    assert faults == []


def test_last_use_of_agent_keys_is_consistent_with_the_request_log(installation: str, folder: str) -> None:
    """A key's last use is the time of its newest request, and no request is later than the key's revocation."""
    with closing(sqlite3.connect(f"{folder}/logs.sqlite3")) as logs:
        requests = dict(logs.execute("SELECT key, max(started_at) FROM routing_admin_requestlog GROUP BY key"))
    with closing(sqlite3.connect(f"{folder}/routing_admin.sqlite3")) as database:
        rows = database.execute("SELECT public_id, last_used_at, revoked_at FROM capabilities_agentkey").fetchall()
    assert not [key for key, used, _revoked in rows if key in requests and used is None]
    assert not [key for key, used, revoked in rows if used and revoked and used > revoked]


def test_no_page_makes_more_than_twelve_queries(visitor: Visitor, folder: str) -> None:
    addresses = [visitor.address(name) for name in PAGES if name not in OUTSIDE]
    command = [sys.executable, "-m", "tests.ui.large.queries", folder, *addresses]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def _offer_models(page: Any) -> None:
    """Enter 340 model names, so that the page lists all of them."""
    page.locator("summary", has=page.locator(".chev")).first.click()
    page.fill("#names", "\n".join(OFFERED))
    page.locator("button[value=write]").click()
    page.locator("#offer").wait_for()


def _find_size_faults(page: Any) -> list[str]:
    """Return by how many pixels the page is too wide or too high at its present width."""
    wide, tall = page.evaluate(SIZE)
    limits = ((wide, 0, "px too wide"), (tall, TALLEST, "px tall"))
    return [f"{value:,} {measure}" for value, limit, measure in limits if value > limit]


def _find_document_faults(page: Any, answer: Any, language: str, expected: int) -> list[str]:
    """Return the faults that can be found as soon as the page is loaded."""
    shifted = page.evaluate("window.shifted")
    facts = {
        f"status {answer.status}": answer.status == expected,
        f"title {page.title()!r}": re.fullmatch(r"\S.* · routing_admin", page.title()) is not None,
        f"{page.locator('h1').count()} headings": page.locator("h1").count() == 1,
        f"lang {page.locator('html').get_attribute('lang')}": page.locator("html").get_attribute("lang") == language,
        f"layout shift {shifted:.3f}": shifted < CALM,
    }
    gaps = GAP.findall(page.locator("body").inner_text())
    return [*(fact for fact, holds in facts.items() if not holds), *(f"a gap in {gap}" for gap in gaps)]
