"""Render a Markdown document as HTML without raw HTML or images. Links to documents lead to their pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from routing_admin.console.base.tags.highlight import highlight_json
from routing_admin.console.base.tags.ui import soft_breaks

COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE | re.DOTALL)
EXAMPLE_ADDRESS = "http://127.0.0.1:8000"
PART_TAG = "h2"
"""Tag of the headings that the table of contents lists."""


@dataclass(frozen=True, slots=True)
class Target:
    """The URL of a link, and the linked document's title, which is shown in place of its file name."""

    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, its anchor, and the plain text below it. The section of the document's title has no anchor."""

    heading: str
    anchor: str
    text: str
    tag: str


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. Its HTML depends on the page's language only in the labels of the copy buttons."""

    title: str
    sections: Sequence[Section]
    tokens: Sequence[Token]

    @property
    def parts(self) -> list[dict[str, str]]:
        return [
            {"id": section.anchor, "label": section.heading} for section in self.sections if section.tag == PART_TAG
        ]

    @property
    def html(self) -> SafeString:
        return self.render()

    def render(self, address: str = "") -> SafeString:
        """Return the document as HTML. In code examples, `address` replaces the server's example address."""
        return SafeString(READER.renderer.render(self.tokens, READER.options, {"address": address}))


def insert_address(code: str, address: str) -> str:
    if not address:
        return code
    host = urlsplit(address).netloc
    return code.replace(EXAMPLE_ADDRESS, address).replace(EXAMPLE_ADDRESS.removeprefix("http://"), host)


class Renderer(RendererHTML):
    """Renders code with a copy button, and wide tables in a scrollable box."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        code, language = insert_address(tokens[idx].content, env["address"]), tokens[idx].info.split(" ")[0]
        body = highlight_json(code) if language == "json" else SafeString(escape(code))
        return render_to_string("components/code.html", {"body": body, "label": language, "id": f"code-{idx}"})

    code_block = fence

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<code>{soft_breaks(insert_address(tokens[idx].content, env['address']))}</code>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="scroll" tabindex="0"><table class="table">\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"


READER = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable("table")
OUTLINE = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")
"""Parser for headings, paragraphs and tables, which leaves the markup within lines unparsed."""
MARKUP = re.compile(r"!?\[([^][]*)\]\([^()]*\)|[`*]")
"""Pattern for links, images, code and emphasis within a line."""


def parse(text: str, resolve: Callable[[str], Target | None]) -> Document:
    """Parse a document. `resolve` returns the target of a link, or None if only its text is shown."""
    tokens = READER.parse(COMMENT.sub("", text))
    sections = list(_sections(tokens))
    for token in tokens:
        if token.type in ("th_open", "td_open") and "style" in token.attrs:
            # The content security policy forbids inline styles, so a class aligns the cells.
            token.attrs = {"class": "num"} if "right" in str(token.attrs["style"]) else {}
        if token.children:
            token.children = list(_with_links(token.children, resolve))
    is_titled = bool(tokens) and tokens[0].tag == "h1"
    return Document(sections[0].heading if is_titled else "", sections, tokens[3:] if is_titled else tokens)


def read_sections(text: str) -> list[Section]:
    """Return a document's sections for searching, in a fifth of the time that `parse` takes."""
    return list(_sections(OUTLINE.parse(COMMENT.sub("", text))))


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """Yield the sections of a document, with the same heading anchors as on GitHub."""
    heading, anchor, tag, texts, taken = "", "", "", list[str](), set[str]()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            if tag or texts:
                yield Section(heading, anchor, " ".join(texts), tag)
            heading, tag, texts = _plain(tokens[place + 1]), token.tag, []
            anchor = "" if tag == "h1" else _free_anchor(heading, taken)
            token.attrs = {"id": anchor}
        elif token.type in ("inline", "fence") and tokens[place - 1].type != "heading_open":
            texts.append(_plain(token))
    yield Section(heading, anchor, " ".join(texts), tag)


def _free_anchor(heading: str, taken: set[str]) -> str:
    anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    names = (anchor, *(f"{anchor}-{number}" for number in range(1, len(taken) + 1)))
    anchor = next(name for name in names if name not in taken)
    taken.add(anchor)
    return anchor


def _plain(token: Token) -> str:
    if not token.children:
        return MARKUP.sub(r"\1", token.content).replace("\n", " ") if token.type == "inline" else token.content
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children)


def _with_links(children: Sequence[Token], resolve: Callable[[str], Target | None]) -> Iterator[Token]:
    target: Target | None = None
    is_dead = False
    for token in children:
        if token.type == "link_open":
            target = resolve(str(token.attrs["href"]))
            is_dead = target is None
            if target:
                token.attrs = {"href": target.url, **({"rel": "noreferrer"} if "://" in target.url else {})}
        elif token.type == "text" and target and target.title and token.content.endswith(".md"):
            token.content = target.title
        if token.type == "image":
            yield Token("text", "", 0, content=token.content)
        elif not (is_dead and token.type in ("link_open", "link_close")):
            yield token
        if token.type == "link_close":
            target, is_dead = None, False
