"""Text that code shows to users is translated: views, forms and actions pass it through gettext.

Templates are checked in tests/ui/test_frame_rules.py. This test reads the source code: a message, a field's label, an
error or a problem must be a gettext call, or a value that came from one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACES = ("console", "library", "agents", "guards")
FILES = sorted(
    path
    for app in ("capabilities", "artifacts", "routing_admin")
    for path in (ROOT / app).rglob("*.py")
    if any(folder in path.relative_to(ROOT).with_suffix("").parts for folder in PLACES)
    and not path.stem.endswith(("api", "schemas", "queries"))  # Error messages for scripts and agents are in English.
)
ERRORS = {"ActionError", "NotFoundError", "InUseError", "ConflictError", "ForbiddenError", "ValidationError"}
MESSAGES = {"success", "info", "warning", "error", "add_message"}
SENTENCE_ARGUMENTS = {"label", "help_text", "empty_label", "error_message", "verbose_name", "said", "sentence"}
SENTENCE = re.compile(r"[A-Za-z]{2,}.*\s.*[A-Za-z]{2,}|^[A-Z][a-z]{2,}")
"""Two words, or one capitalized word, count as text. Ids, paths and codes do not."""


def sentences_for_people(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield every expression in the file that is shown to users, as far as the syntax shows it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = last_name(node.func)
        if name in ERRORS or (name == "Problem" and len(node.args) > 1):
            yield node.args[1 if name == "Problem" else 0] if node.args else ast.Constant("")
        if isinstance(node.func, ast.Attribute) and name in MESSAGES and last_name(node.func.value) == "messages":
            yield from node.args[1:2] if name != "add_message" else node.args[2:3]
        if name == "add_error" and len(node.args) > 1:
            yield node.args[1]
        yield from (keyword.value for keyword in node.keywords if keyword.arg in SENTENCE_ARGUMENTS)


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, or an empty string for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def literal_texts(node: ast.expr) -> Iterator[str]:
    """Yield the string literals in an expression, except those within a call."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and SENTENCE.search(node.value):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (text for part in node.values for text in literal_texts(part))
    elif isinstance(node, ast.BinOp):
        yield from literal_texts(node.left)
        if not isinstance(node.op, ast.Mod):
            yield from literal_texts(node.right)
    elif isinstance(node, ast.IfExp):
        yield from literal_texts(node.body)
        yield from literal_texts(node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from (text for value in node.values for text in literal_texts(value))


def untranslated(source: str) -> list[str]:
    """Return a file's untranslated texts."""
    return [text for expression in sentences_for_people(ast.parse(source)) for text in literal_texts(expression)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_user_visible_texts_in_code_are_translated(path: Path) -> None:
    assert untranslated(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "messages.success(request, 'Route saved')",
        "messages.error(request, f'{name} is gone now')",
        "raise ConflictError('Somebody else changed this.')",
        "raise InUseError('Used by %(users)s still' % {'users': users})",
        "forms.CharField(label='Name', help_text=_('As it is called.'))",
        "form.add_error('name', 'There is one already')",
        "Problem('code', 'A code is letters.', 'range')",
        "messages.success(request, 'All saved' if done else _('Nothing to save'))",
        "forms.ValidationError('Not a ' + kind + ' at all')",
    ],
)
def test_missing_translation_in_code_is_detected(source: str) -> None:
    assert len(untranslated(source)) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "messages.success(request, _('Route saved'))",
        "messages.success(request, said % {'name': name})",
        "raise ConflictError(_('Changed %(count)s times') % {'count': 3})",
        "raise NotFoundError(sentence)",
        "forms.CharField(label=_('Name'))",
        "Problem('routing.default', message, 'required')",
        "raise ConflictError(str(refusal))",
    ],
)
def test_translated_code_passes_the_check(source: str) -> None:
    assert untranslated(source) == []


def test_translation_check_covers_every_app() -> None:
    """If no files were found, the check would pass without checking anything."""
    apps = {path.relative_to(ROOT).parts[0] for path in FILES}
    assert apps == {"capabilities", "artifacts", "routing_admin"}
    assert len(FILES) > 20


HOUSE_WORDS = re.compile(
    r"\bIt stays\.|model, if another|[Ss]peaks for"
    r"|[Ss]tands? (?:here|there|in|for|at|beside|twice|already|alone|only)\b"
    r"|All 1 |\bis told\b|\bare told\b|\bnobody else\b|\bwas asked in vain\b|\bgoes on with\b|\bledger\b"
)
"""Idioms that readers outside this project do not know, and a plural that is wrong after the number one."""


def messages() -> list[str]:
    """Return every English message that is in use and has a translation."""
    source = (ROOT / "routing_admin/locale/zh_Hans/LC_MESSAGES/django.po").read_text(encoding="utf-8")
    blocks = [block for block in source.split("\n\n") if "Of logs of earlier versions" not in block]
    texts = re.findall(r'^msgid(?:_plural)? (".*")$', "\n\n".join(blocks), re.MULTILINE)
    return [ast.literal_eval(text) for text in texts]


def test_no_page_uses_internal_terms() -> None:
    assert [text for text in messages() if HOUSE_WORDS.search(text)] == []


@pytest.mark.parametrize("text", ["The name in chains. It stays.", "It stands in the log.", "All 1 candidates failed."])
def test_internal_term_check_finds_internal_terms(text: str) -> None:
    assert HOUSE_WORDS.search(text)
