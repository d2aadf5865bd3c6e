"""Templates are readable: lines have at most 120 columns and one block-level element, and are indented by nesting.

Forbidden content (inline styles, inline scripts, …) is checked in tests/ui/test_frame_rules.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(path for folder in ("templates", "tests/ui/templates") for path in (ROOT / folder).rglob("*.html"))
COLUMNS, STEP = 120, 2

BLOCK_LEVEL = re.compile(
    "article|aside|body|button|caption|colgroup|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form"
    "|h[1-6]|head|header|html|label|legend|li|main|nav|noscript|ol|optgroup|option|p|pre|section|select|summary|svg"
    "|table|tbody|td|template|textarea|tfoot|th|thead|title|tr|ul"
)
"""Elements that need their own line. Text and inline elements (a, b, code, span …) may share a line."""

VOID = re.compile("area|base|br|circle|col|hr|img|input|line|link|meta|path|polygon|polyline|rect|source|use|wbr")
VERBATIM = {"pre", "textarea"}
CONTROL = {
    *("autoescape", "block", "blocktranslate", "comment", "filter", "for", "if", "partialdef"),
    *("sentences", "spaceless", "with"),
}
BRANCHES = {"elif", "else", "empty", "plural"}
TOKEN = re.compile(
    r"\{\{.*?\}\}|\{#.*?#\}|<!--.*?-->|<![^>]*>|\{%\s*(?P<control>\w+).*?%\}|</(?P<closing>[\w-]+)>"
    r"|<(?P<opening>[a-z][\w-]*)|(?P<end>/?>)|(?P<quote>[\"'])|(?P<line>\n *)|[^\s<>{\"']+|\S",
    re.DOTALL,
)


@dataclass(frozen=True)
class Enclosure:
    """The construct that encloses the following text, and the indentation of the line that opened it.

    `kind` is `control` (a template tag with an end), `tag` (an HTML tag before its `>`), `quote` (the quoted value of
    an attribute), `element`, or `template` for the file itself.
    """

    kind: str
    name: str
    indent: int

    @property
    def inside(self) -> int:
        """Return the indentation of lines inside the enclosure. Attributes are indented deeper than content."""
        return self.indent + (2 * STEP if self.kind == "tag" else STEP)


class Reader:
    """A parser that collects a template's violations with their lines."""

    def __init__(self, source: str) -> None:
        self.source, self.position = source, 0
        self.enclosures = [Enclosure("template", "", -STEP)]
        self.number, self.indent, self.blocks, self.is_first = 1, 0, 0, True
        self.complaints: list[str] = []

    def read(self) -> list[str]:
        while match := TOKEN.search(self.source, self.position):
            self.position = match.end()
            kind, text = match.lastgroup or "", match[match.lastgroup or 0]
            if kind == "line":
                self.number, self.indent, self.blocks, self.is_first = self.number + 1, len(text) - 1, 0, True
                continue
            if self.is_first:
                self.check_indent(kind, text)
            if take := getattr(self, f"take_{kind}", None):
                take(text)
        return self.complaints + [
            f"line {self.number}: {enclosure.name} is never closed" for enclosure in self.enclosures[1:]
        ]

    def check_indent(self, kind: str, text: str) -> None:
        """Check the indentation of a line's first token.

        It must align with the construct that it ends or continues, or be indented inside the one that encloses it.
        """
        last, self.is_first = self.enclosures[-1], False
        ends = {("control", f"end{last.name}"), ("closing", last.name), ("quote", last.name)}
        is_end = (kind, text) in ends or (kind == "control" and text in BRANCHES)
        expected = last.indent if is_end else last.inside
        if self.indent != expected:
            self.complain(f"indented by {self.indent} columns, not {expected}")

    def take_control(self, name: str) -> None:
        if name in CONTROL:
            self.enclosures.append(Enclosure("control", name, self.indent))
        elif name.startswith("end"):
            self.close("control", name.removeprefix("end"))

    def take_opening(self, name: str) -> None:
        if self.enclosures[-1].kind == "quote":
            return
        if BLOCK_LEVEL.fullmatch(name):
            self.blocks += 1
            if self.blocks == 2:
                self.complain(f"more than one block-level element, the second is {name}")
        self.enclosures.append(Enclosure("tag", name, self.indent))

    def take_end(self, text: str) -> None:
        """Handle the `>` that ends a tag. It begins an element, unless the element is void. Skip verbatim content."""
        last = self.enclosures[-1]
        if last.kind != "tag":
            return
        self.enclosures.pop()
        if text == ">" and not VOID.fullmatch(last.name):
            self.enclosures.append(Enclosure("element", last.name, last.indent))
        if last.name in VERBATIM:
            start, self.position = self.position, self.source.index(f"</{last.name}", self.position)
            self.number += self.source.count("\n", start, self.position)

    def take_quote(self, text: str) -> None:
        if self.enclosures[-1] == Enclosure("quote", text, self.enclosures[-1].indent):
            self.enclosures.pop()
        elif next(enclosure.kind for enclosure in reversed(self.enclosures) if enclosure.kind != "control") == "tag":
            self.enclosures.append(Enclosure("quote", text, self.indent))

    def take_closing(self, name: str) -> None:
        self.close("element", name)

    def close(self, kind: str, name: str) -> None:
        last = self.enclosures[-1]
        if (last.kind, last.name) == (kind, name):
            self.enclosures.pop()
        else:
            self.complain(f"{name} ends where {last.name or 'nothing'} is open")

    def complain(self, reason: str) -> None:
        self.complaints.append(f"line {self.number}: {reason}")


def find_violations(source: str) -> list[str]:
    """Return each violation in a template's text, with its line."""
    lines = enumerate(source.split("\n"), 1)
    wide = [f"line {number}: {len(line)} columns" for number, line in lines if len(line) > COLUMNS]
    return wide + Reader(source).read()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_template_has_no_formatting_violations(path: Path) -> None:
    assert find_violations(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (f"<p>{'x' * 120}</p>", "line 1: 127 columns"),
        ("<ul>\n  <li>a</li><li>b</li>\n</ul>", "line 2: more than one block-level element, the second is li"),
        ("<div><p>a</p></div>", "line 1: more than one block-level element, the second is p"),
        ("<div>\n    <p>a</p>\n</div>", "line 2: indented by 4 columns, not 2"),
        ("<div>\n<p>a</p>\n</div>", "line 2: indented by 0 columns, not 2"),
        ("<div>\n\t<p>a</p>\n</div>", "line 2: indented by 0 columns, not 2"),
        ("<div>\n  <p>a</p>\n  </div>", "line 3: indented by 2 columns, not 0"),
        ("{% if a %}\n<p>a</p>\n{% endif %}", "line 2: indented by 0 columns, not 2"),
        ("{% if a %}\n  b\n  {% else %}\n  c\n{% endif %}", "line 3: indented by 2 columns, not 0"),
        ('<input name="a"\n  value="b">', "line 2: indented by 2 columns, not 4"),
        ("{% if a %}<div>{% endif %}\n</div>", "line 1: if ends where div is open"),
        ("<div>", "line 1: div is never closed"),
    ],
)
def test_each_kind_of_formatting_violation_is_found(source: str, complaint: str) -> None:
    assert complaint in find_violations(source)


@pytest.mark.parametrize(
    "source",
    [
        '<p class="a">one <b>two</b> {% if c %}<code>{{ c }}</code>{% endif %}</p>',
        '<label>\n  <input name="a"{% if b %} checked{% endif %}>\n  {% translate "It\'s a > b" %}\n</label>',
        '<a href="/"\n    {% if c %}\n      title="{% blocktranslate trimmed %}\n        d\n      '
        '{% endblocktranslate %}"\n    {% endif %}>e</a>',
        '<textarea name="a">\n{{ one.text }}</textarea>',
        "{% for a in b %}\n  <br>\n{% empty %}\n  <hr>\n{% endfor %}",
    ],
)
def test_well_formatted_template_has_no_violations(source: str) -> None:
    assert find_violations(source) == []


SHOWN_AS_WRITTEN = re.compile(
    r'<\w+\s[^>]*\bclass="said\b[^>]*>[ ]*\n'
    r'|<table class="diff">(?:(?!</table>).)*<td[^>]*>[ ]*\n'
    r'|<ol class="crumbs">(?:(?!</ol>).)*<li>[ ]*\n',
    re.DOTALL,
)
"""Matches a line break at the start of an element whose white space is preserved (`said`, `diff` cells, `crumbs`)."""


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_text_with_preserved_white_space_begins_directly_after_its_tag(path: Path) -> None:
    assert SHOWN_AS_WRITTEN.search(path.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    "source",
    [
        '<div class="said ok" hx-disable>\n  a\n</div>',
        '<table class="diff">\n<td class="n">\n  1\n</td>',
        '<ol class="crumbs">\n  <li>a</li>\n  <li>\n    b\n  </li>\n</ol>',
    ],
)
def test_line_break_before_text_with_preserved_white_space_is_found(source: str) -> None:
    assert SHOWN_AS_WRITTEN.search(source) is not None


SUBMIT = re.compile(r'<button(?![^>]*type="button")(?:"[^"]*"|\{%.*?%\}|[^">{])*>(.*?)</button>', re.DOTALL)
SENTENCE = re.compile(r"\{% (?:translate \"|blocktranslate[^%]*%\}\s*)([A-Z]\w*)(?!\w)[^%]*?(…)?(?=\"|\s*\{%)")
VERBS = set(re.findall(r"`(\w+)`", (ROOT / "templates/components/README.md").read_text().split("## One verb")[-1]))
ANSWERS = {"All", "Dark", "It", "Light", "System"}
"""Labels of submit buttons that answer a question above them instead of naming an action."""


def button_verbs(source: str) -> set[str]:
    """Return the first word of each submit button, and of each verb that a template passes to a component."""
    submits = {word for body in SUBMIT.findall(source) for word, is_busy in SENTENCE.findall(body) if not is_busy}
    return submits | set(re.findall(r'\{% translate "(\w+)[^"]*" as (?:verb|other|enable|disable) %\}', source))


def test_every_button_label_begins_with_the_verb_of_its_action() -> None:
    found = {path.name: button_verbs(path.read_text(encoding="utf-8")) - VERBS - ANSWERS for path in TEMPLATES}
    assert {name: words for name, words in found.items() if words} == {}
    assert set().union(*(button_verbs(path.read_text(encoding="utf-8")) for path in TEMPLATES)) >= {
        "Add",
        "Save",
        "Rotate",
    }


def test_templates_are_found_for_the_checks() -> None:
    """If no templates were found, the checks above would pass without checking anything."""
    assert len(TEMPLATES) > 100
