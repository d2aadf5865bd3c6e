"""Paths and modules named in documents exist. Each check is tested with a planted violation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix() for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md")
)
RECORDS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "decisions").glob("*.md"))
TOPS = ("artifacts", "capabilities", "docs", "routing_admin", "static", "templates", "tests")
QUESTIONS, MAX_FILES = 12, 3

WORDS = re.compile(r"`([^`\n]+)`")
ENDINGS = (".py", ".md", ".toml", ".html", ".css", ".js")
COMMAND = re.compile(r"python -m ([\w.]+)")
QUESTION = re.compile(r"^(\d+)\. \*\*(.+?\?)\*\*\n(.*?)(?=^\d+\. |^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMING = "(coming)"


def read_document(document: str) -> str:
    return (ROOT / document).read_text("utf-8")


def is_path(word: str) -> bool:
    """Return whether a word in code style looks like a path in this repository or the last part of one."""
    if re.search(r"[\s<>…]|NAME", word) or word.startswith("/"):
        return False
    return word.endswith(ENDINGS) or (word.split("/")[0] in TOPS and "/" in word)


def paths_in(text: str) -> list[str]:
    return [word for word in WORDS.findall(text) if is_path(word)]


def missing_files(text: str) -> list[str]:
    """Return the paths named in a text that do not exist. A path may be given by its last parts only."""
    files = [path.relative_to(ROOT).as_posix() for top in TOPS for path in (ROOT / top).rglob("*.*")]
    return [
        path
        for path in paths_in(text)
        if not (ROOT / path).exists() and not any(file.endswith(f"/{path}") for file in files)
    ]


def missing_modules(text: str) -> list[str]:
    """Return the modules that a text says to run but that cannot be run."""
    modules = [ROOT / module.replace(".", "/") for module in COMMAND.findall(text)]
    return [str(module) for module in modules if not (module.with_suffix(".py").exists() or module.is_dir())]


def tree_in(text: str) -> str:
    """Return the folder tree that a document draws: the fenced block that begins with an app's folder."""
    return next(block for block in BLOCK.findall(text) if block.startswith("capabilities/"))


def folders_in(tree: str, *, coming: bool = False) -> Iterator[str]:
    """Yield the folders in a drawing, relative to the root: existing ones, or planned ones if `coming` is true."""
    app = ""
    for line in tree.splitlines():
        names, _, explanation = line.strip().partition("  ")
        app = "" if not line.startswith(" ") else app
        if explanation.strip().startswith(COMING) is coming:
            yield from (f"{app}{name}" for name in names.split())
        app = app or names


def answers_by_question(text: str) -> list[tuple[str, list[str]]]:
    """Return each question in a document with the files that its answer names."""
    return [(question, paths_in(answer)) for _, question, answer in QUESTION.findall(text)]


def badly_answered_questions(text: str) -> list[str]:
    return [question for question, files in answers_by_question(text) if not 1 <= len(files) <= MAX_FILES]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_named_in_a_document_exist(document: str) -> None:
    text = read_document(document)
    assert missing_files(text) == []
    assert missing_modules(text) == []


@pytest.mark.parametrize("record", RECORDS)
def test_decision_record_is_short_and_names_existing_files(record: str) -> None:
    text = read_document(record)
    assert len(text.splitlines()) <= 25
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert missing_files(text) == []


def test_folders_in_the_readme_tree_exist_and_the_tree_fits_a_screen() -> None:
    tree = tree_in(read_document("README.md"))
    assert len(tree.splitlines()) <= 30
    folders = list(folders_in(tree))
    assert len(folders) > 20
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
    assert [folder for folder in folders_in(tree, coming=True) if (ROOT / folder).exists()] == []


def test_each_question_in_contributing_is_answered_by_at_most_three_files() -> None:
    """If an answer needs more files, some rule is defined in too many modules."""
    text = read_document("CONTRIBUTING.md")
    assert len(answers_by_question(text)) == QUESTIONS
    assert badly_answered_questions(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "See `capabilities/core/attic.py`.",
        "See `capabilities/core/wire.py`, `attic.py` beside it.",
        "See `chat/attic.py`.",
        "See `tests/attic/`.",
    ],
)
def test_missing_file_named_in_a_document_is_found(text: str) -> None:
    assert len(missing_files(text)) == 1


def test_missing_module_and_folder_named_in_a_document_are_found() -> None:
    assert missing_modules("Run `python -m tests.bench.bench_attic`.") != []
    tree = "capabilities/  Who?\n  core/attic/  what is old?\n  core/limits/  (coming) what may it cost?\n"
    assert list(folders_in(tree)) == ["capabilities/", "capabilities/core/attic/"]
    assert list(folders_in(tree, coming=True)) == ["capabilities/core/limits/"]


def test_answer_with_no_file_or_four_files_is_found() -> None:
    files = " ".join(f"`capabilities/{name}.py`" for name in ("access", "acts", "apps", "models"))
    assert badly_answered_questions(f"1. **Who?**\n   Us: {files}\n2. **What?**\n   Nothing.\n") == ["Who?", "What?"]
