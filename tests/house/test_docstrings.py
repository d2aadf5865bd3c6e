"""Docstrings: a public function that raises says what and when. For every check a violation is planted, and is caught.

That every public class and function has a docstring at all is ruff's D1 (`pyproject.toml`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("capabilities", "artifacts", "routing_admin")
HOOKS = re.compile(r"clean(_\w+)?")
"""Django calls these of a form and expects `ValidationError`; their docstring says what is taken."""
STATUS = re.compile(r"\b[45]\d\d\b")

House = Mapping[str, str]
"""The sources of the three apps by path, migrations aside."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def house() -> dict[str, str]:
    """The house as it stands."""
    files = [file for app in APPS for file in sorted((ROOT / app).rglob("*.py")) if "migrations" not in file.parts]
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


def public_functions(sources: House) -> Iterator[tuple[str, Function]]:
    """Every function and method that others may call, with its path; not what stands inside another function."""
    for path, source in sources.items():
        waiting: list[ast.Module | ast.ClassDef] = [ast.parse(source)]
        while waiting:
            for node in waiting.pop().body:
                if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
                    if isinstance(node, ast.ClassDef):
                        waiting.append(node)
                    else:
                        yield path, node


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in a function but what stands in functions and classes inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            yield child
            yield from own_nodes(child)


def raised_in(function: Function) -> list[str]:
    """What a function raises itself, once each: names of classes, or of what makes the error; not a bare `raise`."""
    raised = [node.exc for node in own_nodes(function) if isinstance(node, ast.Raise) and node.exc is not None]
    made = [each.func if isinstance(each, ast.Call) else each for each in raised]
    return list(dict.fromkeys(ast.unparse(each).rpartition(".")[2] for each in made))


def is_call_of_the_api(function: Function) -> bool:
    """Whether `/api/v1/docs` shows the docstring: agents read it, so it speaks of statuses, not of classes."""
    return any(ast.unparse(decorator).startswith("router.") for decorator in function.decorator_list)


def tells_of(function: Function, names: list[str]) -> bool:
    """Whether a docstring says "raises" and names each class; a call of the API's, the status that agents see."""
    text = ast.get_docstring(function) or ""
    if is_call_of_the_api(function):
        return STATUS.search(text) is not None
    return "raise" in text.lower() and all(name in text for name in names if name[:1].isupper())


def silent_about_errors(sources: House) -> list[str]:
    """Public functions that raise, and whose docstring does not tell."""
    found = []
    for path, function in public_functions(sources):
        names = raised_in(function)
        if names and not HOOKS.fullmatch(function.name) and not tells_of(function, names):
            found.append(f"{path}:{function.lineno} {function.name} raises {', '.join(names)}")
    return found


PLANTED = (
    'def halve(n):\n    """Half of it."""\n    raise ValueError("odd")',
    'def halve(n):\n    """Half of it. Raises `ValueError` for an odd number."""\n    raise TypeError("no number")',
    'def halve(n):\n    """Half of it; `ValueError` for an odd number."""\n    raise ValueError("odd")',
    'def halve(n):\n    """Half of it."""\n    if n % 2:\n        raise odd(n)',
    'class Half:\n    async def of(self, n):\n        """Half of it."""\n        raise LookupError',
    '@router.get("/half")\ndef half(request):\n    """Raises `CallError`."""\n    raise CallError(404, "no_half")',
)
"""Sources that must not stand."""

LET_STAND = (
    'def halve(n):\n    """Half of it. Raises `ValueError` for an odd number."""\n    raise ValueError("odd")',
    'def halve(n):\n    """Half of it."""\n    try:\n        act(n)\n    except OSError:\n        raise',
    'def _halve(n):\n    raise ValueError("odd")',
    'def halving():\n    """What halves."""\n    def halve(n):\n        raise ValueError("odd")\n    return halve',
    'class Form:\n    def clean_half(self):\n        """An even number."""\n        raise ValidationError("odd")',
    '@router.get("/half")\ndef half(request):\n    """A half; 404 without one."""\n    raise CallError(404, "no_half")',
)
"""Sources that may: the caller is told, an error passes by, nobody else calls it, or it is Django's own custom."""


def test_public_functions_say_what_they_raise() -> None:
    """Whoever calls one knows what to expect without reading its body."""
    assert silent_about_errors(house()) == []


@pytest.mark.parametrize("source", PLANTED)
def test_one_that_says_nothing_is_caught(source: str) -> None:
    """The check names its place."""
    found = silent_about_errors({"routing_admin/attic.py": source})
    assert len(found) == 1
    assert found[0].startswith("routing_admin/attic.py:")


@pytest.mark.parametrize("source", LET_STAND)
def test_what_needs_no_word_is_let_stand(source: str) -> None:
    """The check asks nothing of what is told already or of what nobody outside calls."""
    assert silent_about_errors({"routing_admin/attic.py": source}) == []
