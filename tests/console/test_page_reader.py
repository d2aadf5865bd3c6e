"""`Page` finds elements by role and name."""

from __future__ import annotations

import pytest

from tests.console.page import Page

HTML = """
<h1>Routes <small>5</small></h1><a href="/x/"><svg><path></svg> Back</a>
<form><label for="r">Retries</label><input id="r" value="2"><br>
<button disabled><svg><use></svg>
  Save</button><button aria-label="Close">x</button></form>
"""


def test_controls_are_found_by_role_and_name() -> None:
    page = Page(HTML)
    controls = (page.heading("Routes 5"), page.link("Back"), page.field("Retries"), page.button("Save"))
    assert [control.tag if control else "" for control in controls] == ["h1", "a", "input", "button"]
    assert [control.is_disabled for control in controls if control] == [False, False, False, True]
    assert controls[2]
    assert controls[2].value == "2"
    assert page.button("Close")


def test_element_with_another_role_or_a_longer_name_is_not_found() -> None:
    page = Page(HTML)
    assert page.button("Back") is page.link("Save") is page.field("Save") is page.heading("Routes") is None


PARTS = """
<head><title>Keys</title></head>
<div role="status">Saved.</div><template><div role="status">A draft</div><button>Restore</button></template>
<section aria-labelledby="k"><h2 id="k">Keys</h2>
<table><thead><tr><th>Key</th><th>State</th></tr></thead><tbody>
<tr><td><input type="checkbox"></td><th><a href="/1/">deploy</a><span>ra_1</span></th>
<td><b>Ready</b> since 9:00</td></tr>
<tr><th>team <span>of ada</span></th><td>Refused</td></tr></tbody></table></section>
<aside aria-label="About"><dl><dt>Asked for</dt><dd><code>gpt</code></dd><dt>Tokens</dt><dd>1 in,
  2 out</dd></dl><span hx-get="/poll/" hx-trigger="load, every 2s"></span></aside>
<details open><summary>Cached <b>2</b></summary>for an hour</details>
<section><form action="/limits/"><fieldset><legend>Limits</legend>
<label><input type="checkbox" value="9" checked> Daily</label></fieldset></form></section>
"""


def test_row_is_named_by_the_beginning_of_the_row_heading() -> None:
    page = Page(PARTS)
    keys = page.region("Keys")
    assert page.rows == keys.rows == ["deploy", "team"]
    assert keys.row("deploy").link("deploy")
    assert not keys.row("team").link("deploy")


def test_column_returns_the_cells_below_the_heading() -> None:
    rows = "<tr><th>deploy</th><td>Ready</td></tr><tr><th>team</th><td>Refused</td></tr>"
    keys = Page(f"<table><thead><tr><th>Key</th><th>State</th></tr></thead>{rows}</table>")
    assert keys.column("State") == ["Ready", "Refused"]
    with pytest.raises(LookupError, match="'Key', 'State'"):
        keys.column("Missing")


def test_facts_are_found_by_term() -> None:
    page = Page(PARTS)
    assert page.region("About").fact("Asked for").code("gpt")
    assert page.fact("Tokens").text == "1 in, 2 out"


def test_template_and_head_elements_are_not_visible() -> None:
    page = Page(PARTS)
    assert (page.status, page.button("Restore"), page.shows("A draft")) == ("Saved.", None, None)


def test_forms_fieldsets_and_fields_are_found() -> None:
    page = Page(PARTS)
    assert page.form("/limits/")
    assert page.region("Limits").tag == "fieldset"
    daily = page.field("Daily")
    assert daily
    assert daily.is_checked


def test_polled_urls_are_found() -> None:
    assert Page(PARTS).polled_urls == ["/poll/"]


def test_disclosure_is_found_by_the_beginning_of_the_summary() -> None:
    page = Page(PARTS)
    assert page.disclosure("Cached").shows("for an hour")
    assert [control.is_open for control in page.disclosures] == [True]
    with pytest.raises(LookupError, match="Cached 2"):
        page.disclosure("Cach")


def test_text_is_found_in_the_innermost_element() -> None:
    page = Page(PARTS)
    found = [page.shows("Ready"), page.shows("Ready since"), page.shows("nothing"), page.row("team").shows("of ada")]
    assert [element.tag if element else "" for element in found] == ["b", "td", "", "span"]


def test_lookup_error_for_a_missing_part_names_the_existing_parts() -> None:
    for find in (Page(PARTS).region, Page(PARTS).row, Page(PARTS).fact):
        with pytest.raises(LookupError, match="'missing'"):
            find("missing")
