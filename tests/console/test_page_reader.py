"""`Page` finds elements by role and name."""

from __future__ import annotations

from tests.console.page import Page

HTML = """
<h1>Routes <small>5</small></h1><a href="/x/"><svg><path></svg> Back</a>
<form><label for="r">Retries</label><input id="r" value="2"><br>
<button disabled><svg><use></svg>
  Save</button><button aria-label="Close">x</button></form>
"""


def test_each_control_is_found_by_its_role_and_name() -> None:
    """Names have collapsed white space and no text of images, and `aria-label` takes precedence.

    `disabled` is recognized.
    """
    page = Page(HTML)
    controls = (page.heading("Routes 5"), page.link("Back"), page.field("Retries"), page.button("Save"))
    assert [control.tag if control else "" for control in controls] == ["h1", "a", "input", "button"]
    assert [control.is_off for control in controls if control] == [False, False, False, True]
    assert controls[2]
    assert controls[2].value == "2"
    assert page.button("Close")


def test_what_is_not_there_under_that_name_or_role_is_not_found() -> None:
    """`Page` does not find a link as a button, nor a control by a part of its name."""
    page = Page(HTML)
    assert page.button("Back") is page.link("Save") is page.field("Save") is page.heading("Routes") is None
