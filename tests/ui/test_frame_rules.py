"""Rules for pages that are checked without a browser: template content, size budgets, contrast and translations."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(settings.BASE_DIR)
APPS = [ROOT / name for name in ("capabilities", "artifacts", "routing_admin")]
TEMPLATES = sorted(
    [*(ROOT / "templates").rglob("*.html"), *(path for app in APPS for path in app.rglob("templates/**/*.html"))]
)
CODE = sorted(path for app in APPS for path in app.rglob("*.py") if "migrations" not in path.parts)
LOCALE = ROOT / "routing_admin" / "locale" / "zh_Hans" / "LC_MESSAGES"
FORBIDDEN = {
    "a style attribute": r"\sstyle\s*=",
    "an event attribute": r"\son[a-z]+\s*=",
    "hx-on": r"hx-on[:-]",
    "an inline script": r"<script(?![^>]*\ssrc=)[^>]*>",
    "an inline stylesheet": r"<style",
    "text that is not escaped": r"\|\s*safe\b|\{% autoescape off",
    "evaluated htmx values": r"""hx-(vals|headers)\s*=\s*["']\s*js:""",
    "a foreign address": r"""(src|href|action|hx-(get|post))\s*=\s*["'](https?:)?//""",
}
TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
TRANSLATED = re.compile(r"\{% blocktrans(?:late)?\b.*?\{% endblocktrans(?:late)? %\}", re.DOTALL)
COMMENT = re.compile(r"\{% comment\b.*?\{% endcomment %\}|<!--.*?-->", re.DOTALL)
CODE_ELEMENT = re.compile(
    r"<(code|kbd|samp|pre|script)\b[^>]*>.*?</\1>|<[a-z]+ [^>]*\blang=\"[^\"]*\"[^>]*>[^<]*<", re.DOTALL
)
TEXT_ATTRIBUTES = re.compile(r"""\b(?:aria-label|title|placeholder|alt|label|hx-confirm)\s*=\s*"([^"]*)\"""")
OWN_NAMES = {"routing_admin", "English", "routing", "admin"}
WORD = re.compile(r"[A-Za-z\u4e00-\u9fff]{2,}")


def relative_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=relative_name)
def test_templates_comply_with_the_content_security_policy(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert [name for name, pattern in FORBIDDEN.items() if re.search(pattern, source, re.IGNORECASE)] == []


def find_untranslated(source: str) -> set[str]:
    """Return a template's visible words that are not within a translation tag."""
    markup = TAG.sub("", TRANSLATED.sub("", COMMENT.sub("", source)))
    attribute_texts = " ".join(TEXT_ATTRIBUTES.findall(markup))
    texts = re.sub(r"<[^>]*>", " ", CODE_ELEMENT.sub("<", markup))
    return set(WORD.findall(re.sub(r"&#?\w+;", " ", f"{texts} {attribute_texts}"))) - OWN_NAMES


@pytest.mark.parametrize("path", TEMPLATES, ids=relative_name)
def test_every_visible_template_text_is_translated(path: Path) -> None:
    """Text for screen readers must be translated too. Text in code elements need not be."""
    assert find_untranslated(path.read_text(encoding="utf-8")) == set()


def test_finder_reports_untranslated_template_text() -> None:
    assert find_untranslated('<p title="Hello">{{ name }}</p><b>World</b><code>task:x</code> routing_admin') == {
        "Hello",
        "World",
    }


def test_stylesheets_and_our_script_are_within_the_size_budgets() -> None:
    css = sum(path.stat().st_size for path in (ROOT / "static" / "css").glob("*.css"))
    script = sum(path.stat().st_size for path in (ROOT / "static" / "js").glob("*.js"))
    assert css <= 45_000
    assert script <= 15 * 1024


def test_our_script_has_no_eval_and_no_external_url() -> None:
    for path in (ROOT / "static" / "js").glob("*.js"):
        assert not re.search(
            r"\beval\(|new Function|innerHTML|insertAdjacentHTML|https?://", path.read_text(encoding="utf-8")
        )


# Contrast: each text colour on each background that it may have, in both themes.

TOKENS = (ROOT / "static" / "css" / "tokens.css").read_text(encoding="utf-8")
PAIRS = {name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", TOKENS)}
GROUNDS = ("canvas", "paper", "well")
MEANINGS = ("ok", "info", "warn", "bad")
TEXT = [
    *product(("text", "text-2", "text-3", "accent", "accent-2", *MEANINGS), GROUNDS),
    *((name, f"{name}-soft") for name in MEANINGS),
    *(("text", f"{name}-soft") for name in (*MEANINGS, "accent")),
    ("accent-2", "accent-soft"),
    ("on-accent", "accent"),
    ("on-accent", "accent-2"),
    ("canvas", "text"),
]
CATEGORIES = tuple(f"c{number}" for number in range(1, 7))
SHAPES = [*product(("edge", "accent", *(f"{name}-fill" for name in MEANINGS), *CATEGORIES), GROUNDS)]


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_contrast_is_sufficient_on_every_background(theme: int) -> None:
    """WCAG 1.4.3 requires a contrast of at least 4.5 : 1."""
    assert [(a, b) for a, b in TEXT if contrast(PAIRS[a][theme], PAIRS[b][theme]) < 4.5] == []


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast_of_control_edges_and_chart_fills_is_sufficient(theme: int) -> None:
    """WCAG 1.4.11 requires a contrast of at least 3 : 1 for control edges and chart fills."""
    assert [(a, b) for a, b in SHAPES if contrast(PAIRS[a][theme], PAIRS[b][theme]) < 3] == []


# Every text in code and templates has a translation.

CALLS = {
    "gettext": 0,
    "_": 0,
    "gettext_lazy": 0,
    "gettext_noop": 0,
    "ngettext": 0,
    "ngettext_lazy": 0,
    "pgettext": 1,
    "pgettext_lazy": 1,
    "translatable": 0,
}
LITERAL = r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
IN_TEMPLATE = re.compile(rf"(?<!\w)(p?)n?gettext\({LITERAL}(?:\s*,\s*{LITERAL})?|(?<!\w)_\({LITERAL}")


def find_code_strings(path: Path) -> Iterator[tuple[str | None, str]]:
    """Yield the context and text of every translation call in a Python file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            position = CALLS[node.func.id]
            if len(values) > position and isinstance(values[position], str):
                yield (str(values[0]) if position else None), values[position]


def find_template_strings(path: Path) -> Iterator[tuple[str | None, str]]:
    """Yield the context and text of every translation tag in a template."""
    for match in IN_TEMPLATE.finditer(templatize(path.read_text(encoding="utf-8"), origin=str(path))):
        with_context, first, second, short = match.groups()
        if short or first:
            yield (
                (ast.literal_eval(first), ast.literal_eval(second))
                if with_context
                else (None, ast.literal_eval(short or first))
            )


def read_translations() -> tuple[dict[tuple[str | None, str], str], list[str]]:
    """Return the translations in the .po file by context and text, and the entries that are marked as fuzzy."""
    entries: dict[tuple[str | None, str], str] = {}
    fuzzy: list[str] = []
    for block in (LOCALE / "django.po").read_text(encoding="utf-8").split("\n\n"):
        parts: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if match := re.match(r'(msg\w+(?:\[\d\])?) (".*")$', line):
                key = match.group(1)
                parts[key] = ast.literal_eval(match.group(2))
            elif line.startswith('"'):
                parts[key] += ast.literal_eval(line)
        if parts.get("msgid"):
            entries[parts.get("msgctxt"), parts["msgid"]] = parts.get("msgstr", parts.get("msgstr[0]", ""))
            if re.search(r"^#,.*\bfuzzy\b", block, re.MULTILINE):
                fuzzy.append(parts["msgid"])
    return entries, fuzzy


def read_plurals() -> dict[str, str]:
    """Map each message that has a plural to its plural form."""
    source = (LOCALE / "django.po").read_text(encoding="utf-8")
    pairs = re.findall(r'^msgid (".*")\nmsgid_plural (".*")$', source, re.MULTILINE)
    return {ast.literal_eval(singular): ast.literal_eval(plural) for singular, plural in pairs}


def test_every_string_of_code_and_templates_has_a_chinese_translation() -> None:
    """No translation is missing, empty or fuzzy.

    To add texts: `manage.py makemessages -l zh_Hans --no-location --no-wrap`, translate, `compilemessages`.
    """
    entries, fuzzy = read_translations()
    used = {string for path in CODE for string in find_code_strings(path)}
    used |= {string for path in TEMPLATES for string in find_template_strings(path)}
    assert len(used) > 100
    assert sorted(text for context, text in used if not entries.get((context, text))) == []
    assert fuzzy == []


def test_translations_keep_the_placeholders() -> None:
    """Chinese has no plural form, so its placeholders may be those of the English singular or plural."""
    placeholders = re.compile(r"%\(\w+\)s|\{\w+\}|</?code>")
    plurals = read_plurals()
    wrong = [
        text
        for (_, text), translation in read_translations()[0].items()
        if translation
        and set(placeholders.findall(translation))
        not in [set(placeholders.findall(source)) for source in (text, plurals.get(text, text))]
    ]
    assert wrong == []


def test_compiled_translations_equal_the_po_files() -> None:
    with (LOCALE / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    plurals = re.findall(
        r'^msgid "(.*)"\nmsgid_plural', (LOCALE / "django.po").read_text(encoding="utf-8"), re.MULTILINE
    )
    for (context, text), translation in read_translations()[0].items():
        if text in plurals:
            assert compiled.ngettext(text, text, 2) == translation
        else:
            assert (compiled.pgettext(context, text) if context else compiled.gettext(text)) == translation


def test_chinese_translations_follow_the_spacing_and_punctuation_style() -> None:
    rules = [
        r"[\u4e00-\u9fff][,;:!?]",
        r"[\u4e00-\u9fff][A-Za-z0-9]",
        r"[A-Za-z0-9][\u4e00-\u9fff]",
        "[！!]",
        "你",
        "登陆|(?<!网络)代理(?!对)|令牌|功能|禁用|供应商",
    ]
    misformed = [
        translation
        for translation in read_translations()[0].values()
        if any(re.search(rule, re.sub(r"</?code>|%\(\w+\)s", "", translation)) for rule in rules)
        or SPACING.search(re.sub(r"<[^>]*>", "", translation))
    ]
    assert misformed == []


SPACING = re.compile(
    r"[\u4e00-\u9fff] +[\u4e00-\u9fff]"
    r"|[，。：；？（）“”、] | [，。：；？（）“”、]|^ | $"
    r"|[\u4e00-\u9fff]\.(?!\w)|[\u4e00-\u9fff]\)|\([\u4e00-\u9fff]|[\u4e00-\u9fff] ?\(%"
    r"|(?:新增|修改|删除)[:：]"
)
"""Spaces between Chinese words or next to Chinese punctuation, Latin punctuation in Chinese text, and joined labels."""


@pytest.mark.parametrize(
    "text", ["描述 图片", "无人可读： 音频", "未能描述 (%(code)s)", "已恢复.", "新增: 提供商", "团队 "]
)
def test_spacing_pattern_finds_faults_in_chinese_text(text: str) -> None:
    assert SPACING.search(text)
