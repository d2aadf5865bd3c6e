"""Chinese translations, including Django's own messages, follow Chinese typography and one glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django import forms
from django.core import validators
from django.utils.translation import gettext, override

from capabilities.core.delivery.obstacles import ReasonCode, make_reason
from capabilities.core.delivery.tokens import FAMILIES, text_tokens
from capabilities.core.translatable import encode_text
from capabilities.sentences import join_sentences, translate_sentence
from routing_admin.request_log.sentences import render_reason

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "routing_admin/locale/zh_Hans/LC_MESSAGES/django.po"
TEMPLATES = ROOT / "templates"
HAN, WIDE = "\u4e00-\u9fff", "，。：；？！、"
MISSET = re.compile(
    rf"[{HAN}][,;:!?()]|[,;:!?()][{HAN}]"  # Half-width punctuation beside a Chinese word.
    rf"| [{WIDE}）”]|[{WIDE}（“] |[{HAN}] [{HAN}]"  # A space where Chinese has none.
    rf"|[{HAN}][A-Za-z0-9]|[A-Za-z0-9][{HAN}]"  # A missing space beside a Latin word or a digit.
)
SHUNNED = re.compile(r"[你妳]|请求体|标头|退役|读不了|帐[号户]|(?<!照常)(?<!正在)进行|对于该|此 id\b")
"""Words that the glossary replaces, or that read like a machine translation."""

PLACES = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}|</?\w[^>]*>")
FIELDS = (
    forms.CharField,
    forms.IntegerField,
    forms.DecimalField,
    forms.ChoiceField,
    forms.TypedChoiceField,
    forms.MultipleChoiceField,
    forms.ModelChoiceField,
    forms.FileField,
    forms.JSONField,
    forms.URLField,
    forms.DateField,
)
"""The form field classes that the pages use."""

BOUNDS = (validators.MaxValueValidator, validators.MinValueValidator)
PASSWORDS = (
    "The two password fields didn’t match.",
    "Your old password was entered incorrectly. Please enter it again.",
    "This password is too common.",
    "This password is entirely numeric.",
)


def entries() -> Iterator[tuple[str, str]]:
    """Yield every source text with its Chinese translation; Chinese has a single plural form."""
    for block in CATALOGUE.read_text(encoding="utf-8").split("\n\n")[1:]:
        source = re.search(r"^msgid (\".*\")$", block, re.MULTILINE)
        chinese = re.search(r"^msgstr(?:\[0\])? (\".*\")$", block, re.MULTILINE)
        assert source is not None, block
        assert chinese is not None, block
        yield ast.literal_eval(source[1]), ast.literal_eval(chinese[1])


def test_chinese_translations_follow_chinese_typography() -> None:
    assert [text for _source, text in entries() if MISSET.search(PLACES.sub("○", text))] == []


def test_chinese_translations_use_glossary_terms() -> None:
    assert [text for _source, text in entries() if SHUNNED.search(text)] == []


@pytest.mark.parametrize(
    "text", ["失败, 已跳过", "已跳过 ：没有密钥", "已 跳过", "共3 个", "请求体过大", "对模型进行测试", "你的密码"]
)
def test_typography_and_glossary_checks_find_mistakes(text: str) -> None:
    assert MISSET.search(text) or SHUNNED.search(text)


def django_sentences() -> set[str]:
    with override(None):  # Without a language, neither Django's nor the product's own message catalogue is used.
        sentences = {
            str(text)
            for field in FIELDS
            for kind in field.__mro__
            for text in getattr(kind, "default_error_messages", {}).values()
            if isinstance(text, str) or hasattr(text, "_proxy____args")
        }
        sentences |= {str(bound.message) for bound in BOUNDS}
    return {text for text in sentences if "(" not in text or "%(" in text} | set(PASSWORDS)


def test_django_form_errors_are_translated_by_this_project() -> None:
    translated_sources = {source for source, _text in entries()}
    plural = {"Ensure this filename has at most"}
    missing = {
        text
        for text in django_sentences() - translated_sources
        if not any(text.startswith(prefix) for prefix in plural)
    }
    assert missing - {"Please either submit a file or check the clear checkbox, not both."} == set()
    with override("zh-hans"):
        assert gettext("This field is required.") == "请填写此项。"
    with override("en"):
        assert gettext("This field is required.") == "Fill this in."


def test_reason_names_the_capability_in_the_users_language() -> None:
    stored = encode_text(make_reason(ReasonCode.NO_CAPABILITY, capability="vision").sentence())
    with override("zh-hans"):
        assert str(render_reason(stored)) == "该模型不具备视觉理解（vision）能力。"
    with override("en"):
        assert str(render_reason(stored)) == "The model does not support vision."


def test_token_estimate_method_is_translated_to_chinese() -> None:
    rules = [*(family.rule for _pattern, family in FAMILIES), text_tokens("").rule]
    with override("zh-hans"):
        assert [rule for rule in rules if not re.search(f"[{HAN}]", translate_sentence(rule))] == []


def test_chinese_sentences_are_joined_without_a_space() -> None:
    assert join_sentences(("已停用。", "", "请启用。")) == "已停用。请启用。"
    assert join_sentences(("Disabled.", "Enable it.")) == "Disabled. Enable it."
    assert join_sentences(("<b>已停用。", "</b>", "请启用。")) == "<b>已停用。</b>请启用。"
    assert join_sentences(("已停用。", "“错误： 超时。 再试”")) == "已停用。“错误： 超时。 再试”"


GLUED = re.compile(r"\(\{\{|\}\}\)|[%}]\}[,;](?!\S)")
TRANSLATED = re.compile(r"\{% blocktranslate.*?\{% endblocktranslate %\}|<script.*?</script>|\{#.*?#\}", re.DOTALL)


def test_templates_insert_no_punctuation_between_translated_values() -> None:
    """Templates do not insert Latin commas or brackets between values.

    Sentences contain their own punctuation, and lists use a middle dot.
    """
    misplaced = [
        (path.name, sign[0])
        for path in sorted(TEMPLATES.rglob("*.html"))
        for sign in GLUED.finditer(TRANSLATED.sub("", path.read_text(encoding="utf-8")))
    ]
    assert misplaced == []


@pytest.mark.parametrize("text", ["{{ a }}, {{ b }}", "<b>({{ a }})</b>", "{% badge 'x' %}, and"])
def test_template_punctuation_check_finds_mistakes(text: str) -> None:
    assert GLUED.search(TRANSLATED.sub("", text))
