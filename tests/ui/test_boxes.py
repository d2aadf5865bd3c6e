"""Tests of `measure`: it finds each kind of layout fault, and finds nothing on a page without faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.boxes import measure

pytestmark = pytest.mark.ui
LONG = "a sentence that is longer than its place"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (f'<p style="width: 4rem; overflow: hidden; white-space: nowrap">{LONG}</p>', "cut"),
        (f'<p style="width: 4rem; overflow: auto; white-space: nowrap">{LONG}</p>', "scrolls"),
        (f'<p style="width: 4rem; border: 1px solid; white-space: nowrap">{LONG}</p>', "outside of"),
        ('<p style="position: relative; left: 30rem">words</p>', "beyond the window"),
        ('<p style="height: 1rem">words</p><button style="margin-top: -2rem">Press</button>', "overlap"),
        (f'<label style="display: grid"><input type="checkbox"><span>{LONG}</span></label>', "below its box"),
    ],
)
def test_measure_reports_each_kind_of_layout_fault(browser: Any, body: str, fault: str) -> None:
    page = browser.new_page()
    page.set_content(f'<div id="main">{body}</div>')
    found = measure(page, 390)
    assert found
    assert all(line.startswith(f"390: {fault}") for line in found)
    page.close()


def test_measure_accepts_scrolling_text_and_cut_text_with_a_title(browser: Any) -> None:
    page = browser.new_page()
    cell = f"<td style='white-space: nowrap'>{LONG * 5}</td>"
    title = f'<p style="width: 4rem; overflow: hidden; white-space: nowrap" title="{LONG}">{LONG}</p>'
    page.set_content(f"<div id=main><div style='overflow: auto'><table><tr>{cell}</tr></table></div>{title}</div>")
    assert measure(page, 390) == []
    page.close()
