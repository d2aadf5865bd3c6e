"""The dashboard, artifacts and requests in a browser. test_every_page.py checks their accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from artifacts.library import store_bytes, store_text
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from routing_admin.console.demo.load import record_demo_request
from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import RequestLog
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from tests.artifacts.samples import pdf

pytestmark = [pytest.mark.ui, pytest.mark.django_db(transaction=True, databases=["default", "logs"])]
FILES = Path(__file__).resolve().parents[1] / "artifacts" / "files"
HELLO = {"name": "你好.txt", "mimeType": "text/plain", "buffer": "你好".encode()}


@pytest.fixture
def demo(demo: None) -> str:
    """Set up the demo with its files and its request. Return the id of this request."""
    return record_demo_request() or ""


def test_chosen_file_is_uploaded_listed_and_previewed_for_each_model(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/artifacts/")
    page.locator("input[type=file]").set_input_files(HELLO)
    page.locator("[data-upload-list] a", has_text="你好.txt").wait_for()
    page.locator("#rows th a", has_text="你好.txt").wait_for()
    expect(page.locator("#stored-total")).to_contain_text("2 files are stored")
    page.locator("[data-upload-list] a").click()
    page.get_by_role("heading", name="你好.txt").wait_for()
    page.locator("#each").wait_for()
    opened = page.locator("details.delivery[open]").first
    opened.get_by_text("get_artifact").click()
    assert '"routing"' in opened.locator(".panel").nth(2).inner_text()
    page.locator("label:has(#language-zh)").click()
    page.wait_for_url("**language=zh**")
    echo = page.locator("details.delivery", has_text="echo-text")
    if echo.get_attribute("open") is None:
        echo.locator("summary").click()
    echo.get_by_role("button", name="Send to this model").click()
    echo.get_by_role("link", name="See it in the log").click()
    page.locator("#main h1", has_text="Request").wait_for()
    assert RequestLog.objects.filter(surface="page").count() == 1


def test_scan_page_adds_converted_previews_once_the_pages_are_rendered(
    admin_page: Any, demo: str, axe: Callable[[Any], list[str]]
) -> None:
    page, held = admin_page, list[Any]()
    row = store_bytes(SYSTEM, pdf("", ""), filename="scan.pdf", declared="application/pdf")
    # Playwright needs a function that has attributes. The built-in `append` has none.
    page.route("**/artifacts/**draw=1*", lambda route: held.append(route))
    page.goto(f"/artifacts/{row.pk}/?language=en")
    expect(page.locator("#lead")).to_contain_text("Drawing the pages for")
    expect(page.locator("#groups")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#forms")).not_to_contain_text("Converted")
    assert axe(page) == []
    height = page.evaluate("document.documentElement.scrollHeight")
    held[0].continue_()
    expect(page.locator("#g-converted")).to_be_visible()
    expect(page.locator("#waiting")).to_have_count(0)
    expect(page.locator("#forms")).to_contain_text("Converted")
    expect(page.locator("#lead")).to_contain_text("model services only get a description")
    assert abs(page.evaluate("document.documentElement.scrollHeight") - height) <= 8
    assert "draw=1" not in page.url


def test_deleted_files_are_restored_by_undo(admin_page: Any, demo: str) -> None:
    page = admin_page
    store_text(SYSTEM, "one", filename="one.txt")
    store_text(SYSTEM, "two", filename="two.txt")
    before = Artifact.objects.living().count()
    page.goto("/artifacts/")
    bar = page.get_by_role("button", name="Delete selected")
    assert not bar.is_visible()
    for box in page.locator("#rows [name=id]").all()[:2]:
        box.focus()
        page.keyboard.press("Space")
    bar.click()
    page.get_by_text("2 artifacts deleted").wait_for()
    assert Artifact.objects.living().count() == before - 2
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("2 artifacts are back").wait_for()
    assert Artifact.objects.living().count() == before


def test_clicking_a_row_outside_its_controls_opens_the_artifact(admin_page: Any, demo: str) -> None:
    page = admin_page
    store_text(SYSTEM, "one", filename="one.txt")
    page.goto("/artifacts/")
    row = page.get_by_role("row", name="one.txt")
    row.get_by_role("cell").first.click(position={"x": 2, "y": 2})
    row.get_by_role("checkbox").check()
    assert page.url.endswith("/artifacts/")
    row.get_by_role("cell", name="3 B").click()
    page.get_by_role("heading", level=1, name="one.txt").wait_for()


def test_request_log_search_updates_the_list_in_place_and_the_url(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/requests/")
    page.get_by_role("combobox", name="Search requests").fill("task:design")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=task**")
    page.locator("#quick").get_by_role("link", name="Answered by fallback").click()
    page.wait_for_url("**fallback**")
    page.get_by_role("table", name="Requests, newest first").locator("th a").click()
    expect(page.locator("h1")).to_have_text("Request")
    assert "without the image" in page.locator("p.lead").inner_text()


def test_demo_removal_lists_the_objects_first_and_can_be_undone(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/")
    page.get_by_role("button", name="Delete demo data").click()
    dialog = page.get_by_role("dialog", name="Delete the demo data?")
    dialog.get_by_text("vision-agent").wait_for()
    dialog.get_by_role("button", name="Delete demo data").click()
    page.get_by_text("No task route yet").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("All 6 task routes are working").wait_for()


def test_files_can_be_uploaded_and_deleted_without_javascript(
    new_page: Callable[..., Any], sign_in: Callable[[Any], Any], demo: str
) -> None:
    page = sign_in(new_page(java_script_enabled=False))
    page.goto("/artifacts/")
    page.locator("input[type=file]").set_input_files(HELLO)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("heading", name="你好.txt").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("1 artifact deleted").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("1 artifact is back").wait_for()


def test_rejected_upload_keeps_its_row_with_the_reason(admin_page: Any, demo: str, settings: Any) -> None:
    page, before = admin_page, Artifact.objects.count()
    settings.MAX_UPLOAD_BYTES = 20
    page.goto("/artifacts/")
    page.locator("input[type=file]").set_input_files({**HELLO, "buffer": b"x" * 21})
    page.locator("[data-upload-list]", has_text="is over the limit").wait_for()
    # The page still has the limit of 20 bytes, but the server now has a lower one.
    settings.MAX_UPLOAD_BYTES = 10
    page.expected_complaints.append("413")
    page.locator("input[type=file]").set_input_files({**HELLO, "buffer": b"x" * 15})
    page.locator("[data-upload-list]", has_text="larger than the limit of").wait_for()
    assert Artifact.objects.count() == before


def test_file_search_waits_until_input_method_composition_ends(admin_page: Any, demo: str) -> None:
    """A search for Chinese text starts only when a word is chosen, not at each letter typed before that."""
    page = admin_page
    # The search waits after each letter. With a simulated clock, this takes no time.
    page.clock.install()
    page.goto("/artifacts/")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url) if "?q=" in request.url else None)
    page.get_by_role("searchbox", name="File name or reference").focus()
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    page.clock.run_for(600)
    assert urls == []
    session.send("Input.insertText", {"text": "你"})
    page.get_by_text("No stored file has this name").wait_for()
    assert len(urls) == 1


def test_upload_shows_progress_in_bytes_and_can_be_cancelled(admin_page: Any, demo: str) -> None:
    page, before = admin_page, Artifact.objects.count()
    page.goto("/artifacts/")
    session = page.context.new_cdp_session(page)
    # At this speed, the upload of 8 MB takes about twenty seconds, so the progress can be read.
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 400_000}
    session.send("Network.emulateNetworkConditions", slow)
    page.expected_complaints.append("ERR_")
    page.locator("input[type=file]").set_input_files({**HELLO, "buffer": b"0123456789" * 800_000})
    expect(page.locator("#upload [data-done]")).to_have_text(re.compile(r"^[0-6]\.[1-9] MB / 7\.6 MB$"))
    assert 0 < page.locator("#upload progress").evaluate("bar => bar.value") < 100
    page.get_by_role("button", name="Cancel 你好.txt").click()
    expect(page.locator("[data-upload-list] li")).to_have_count(0)
    assert Artifact.objects.count() == before


def test_pasted_and_dropped_files_are_uploaded(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/artifacts/")
    page.evaluate("""() => {
      const filled = (name) => {
        const data = new DataTransfer();
        data.items.add(new File(["hello"], name, { type: "text/plain" }));
        return data;
      };
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: filled("pasted.txt"), bubbles: true }));
      const drop = new DragEvent("drop", { dataTransfer: filled("dropped.txt"), bubbles: true, cancelable: true });
      document.querySelector(".drop").dispatchEvent(drop);
    }""")
    for name in ("pasted.txt", "dropped.txt"):
        page.locator("[data-upload-list] a", has_text=name).wait_for()


def test_dashboard_refresh_preserves_scroll_position_focus_and_lines(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto("/")
    page.locator("#all-requests").focus()
    box = page.locator("#all-requests").bounding_box()
    # This attribute marks the element. It disappears if the element is replaced.
    page.evaluate("""() => { window.shifted = 0; document.querySelector("#live").dataset.old = "";
      new PerformanceObserver((list) => list.getEntries().forEach((shift) => { window.shifted += shift.value; }))
        .observe({ type: "layout-shift" }); htmx.ajax("GET", "/", { target: "#live", swap: "outerHTML" }); }""")
    expect(page.locator("#live[data-old]")).to_have_count(0)
    expect(page.locator("#all-requests")).to_be_focused()
    assert page.locator("#all-requests").bounding_box() == box
    assert page.evaluate("window.shifted") < 0.02
    assert page.locator("#announce").inner_text() == ""


def test_all_providers_can_be_tested_from_the_dashboard(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/")
    page.get_by_role("button", name="Test all").click()
    expect(page.locator("#testing")).to_contain_text("3 of 4 without an answer")
    expect(page.locator("#tested-echo")).to_contain_text("echo answered")
    expect(page.locator("#tested-openai")).to_contain_text("key_missing")
    page.evaluate("""() => { document.querySelector("#live").dataset.old = "";
      htmx.ajax("GET", "/", { target: "#live", swap: "outerHTML" }); }""")
    expect(page.locator("#live[data-old]")).to_have_count(0)
    expect(page.locator("#tested-openai")).to_contain_text("key_missing")
    expect(page.get_by_role("button", name="Test all")).to_be_visible()


def test_all_providers_can_be_tested_from_the_provider_list(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/providers/")
    page.get_by_role("button", name="Test all").click()
    expect(page.locator("#testing")).to_contain_text("3 of 4 without an answer")
    expect(page.locator("#tested-echo")).to_contain_text("echo answered")
    page.locator("tr", has=page.locator("#tested-openai")).get_by_role("button", name="Test").click()
    expect(page.locator("#tested-openai")).to_contain_text("key_missing")


def test_new_requests_are_announced_on_the_open_request_list(admin_page: Any, demo: str) -> None:
    """The notice does not move the page's content. A hidden tab does not poll."""
    page = admin_page
    page.clock.install()
    page.goto("/requests/")
    expect(page.locator(".chart")).to_be_visible()
    table = page.get_by_role("table", name="Requests, newest first")
    box = table.bounding_box()
    RequestLog.objects.create(id="req_new", started_at=timezone.now(), surface="v1", outcome="ok", task_type="fresh")
    # This property overrides the browser's: until it is deleted, the tab counts as hidden.
    page.evaluate("() => Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url) if "newer" in request.url else None)
    page.clock.run_for(25_000)
    assert urls == []
    page.evaluate("() => { delete document.hidden; }")
    page.clock.run_for(11_000)
    expect(page.locator(".newer[aria-live=polite] a")).to_have_text("1 new")
    assert table.bounding_box() == box
    page.locator(".newer a").click()
    expect(table.locator("td a.f").first).to_have_text("fresh")
    expect(page.locator(".newer a")).to_have_count(0)


def test_search_box_suggests_keys_and_then_known_values(admin_page: Any, demo: str) -> None:
    page = admin_page
    page.goto("/requests/")
    options = page.locator("#request-words option")
    expect(options.first).to_have_attribute("value", "status:")
    page.get_by_label("Search requests").press_sequentially("status:error task:des")
    expect(options).to_have_count(1)
    expect(options).to_have_attribute("value", "status:error task:design")


@pytest.mark.parametrize(("name", "tag"), [("sine.wav", "audio"), ("film.webm", "video")])
def test_audio_and_video_can_be_played_on_the_artifact_page(admin_page: Any, demo: str, name: str, tag: str) -> None:
    page = admin_page
    row = store_bytes(SYSTEM, (FILES / name).read_bytes(), filename=name)
    page.goto(f"/artifacts/{row.pk}/")
    player = page.locator(f"{tag}[controls]")
    assert player.evaluate("""element => new Promise((done) => {
      const tell = () => done(element.duration > 0 && element.seekable.length > 0);
      if (element.readyState) tell(); else element.addEventListener("loadedmetadata", tell); })""")


def choose_model(page: Any, label: str, name: str) -> None:
    page.get_by_label(label).fill(name)
    page.get_by_label(label).press("Tab")


def test_two_models_can_be_compared_side_by_side(admin_page: Any, demo: str) -> None:
    page = admin_page
    image = Artifact.objects.filter(kind="image").first()
    assert image is not None
    page.goto(f"/artifacts/{image.pk}/")
    page.get_by_role("link", name="Compare two models").click()
    expect(page.locator(".compare .badge", has_text="differs").first).to_be_visible()
    choose_model(page, "Second model service", "text-model")
    page.wait_for_url("**b=text-model**")
    expect(page.locator(".compare thead th").last).to_contain_text("text-model")
    choose_model(page, "First model service", "echo-text")
    page.wait_for_url("**a=echo-text&b=text-model**")
    expect(page.locator(".compare thead th").first).to_contain_text("echo-text")
    expect(page.locator(".diff mark", has_text="echo").first).to_be_visible()
    choose_model(page, "First model service", "text-model")
    expect(page.get_by_text("Both get exactly the same.").first).to_be_visible()


def test_dashboard_chart_is_reloaded_unless_in_use(admin_page: Any) -> None:
    log_answered_request("req_chart_1")
    loads = list[str]()
    admin_page.on("request", lambda request: loads.append(request.url) if "/volume/" in request.url else None)
    admin_page.clock.install()
    admin_page.goto("/")
    chart = admin_page.locator("#over-time")
    chart.scroll_into_view_if_needed()
    chart.get_by_role("link", name="7 days").click()
    expect(chart.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    log_answered_request("req_chart_2")
    chart.get_by_text("Show as table").click()
    admin_page.clock.run_for(130_000)
    assert len(loads) == 2
    chart.get_by_text("Show as table").click()
    admin_page.locator("h1").click()
    admin_page.clock.run_for(130_000)
    expect(chart.get_by_text("2 requests", exact=True)).to_be_visible()
    expect(chart.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")


def test_dashboard_chart_keeps_its_range_while_the_dashboard_is_refreshed(admin_page: Any) -> None:
    """Htmx initializes an element again if its attributes differ, for example because a swap has just added a class."""
    log_answered_request("req_chart_1")
    loads = list[str]()
    admin_page.on("request", lambda request: loads.append(request.url) if "/volume/" in request.url else None)
    admin_page.goto("/")
    chart = admin_page.locator("#over-time")
    chart.scroll_into_view_if_needed()
    chart.get_by_role("link", name="7 days").click()
    expect(chart.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    admin_page.evaluate("document.querySelector('#over-time').classList.add('swapped'); htmx.process(document.body)")
    with admin_page.expect_response("/"):
        admin_page.evaluate("htmx.ajax('GET', '/', { target: '#live', swap: 'outerHTML' })")
    expect(chart.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    assert len(loads) == 2


def log_answered_request(key: str) -> None:
    write([build_entry(RequestFacts(key, timezone.now(), "v1"), (Attempt("echo", "echo-text", "ok"),))])
