"""Names: a stranger can guess them, and each stands once. For every check a violation is planted, and is caught.

The house is read as paths and syntax trees, so a plant is a file more in a mapping of paths to sources.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("capabilities", "artifacts", "routing_admin")

TAG = re.compile(r"\{[{%](.*?)[%}]\}", re.S)
QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')
NAME = re.compile(r"[A-Za-z_]+")
"""What stands between a template's braces, and the names in it beside what is quoted."""

House = Mapping[str, str]
"""The sources of the three apps by path, migrations aside."""

TWICE: Mapping[str, str] = {
    "DatabaseWrapper": "Django finds a database engine by this name",
    "Command": "Django finds a management command by this name",
    "TaskRoute": "a row of the database, and the seed's name in `core/seeds`, which nothing of ours imports",
}
"""Class names that stand more than once, each with the reason why its package says which is meant."""

NO_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "shared", "stuff", "lib"}
"""Module names that answer no question."""
DJANGO_S_NAMES = {
    f"routing_admin/databases/{engine}/base.py": "Django looks for a database backend in a module `base`"
    for engine in ("sqlite", "postgresql")
}

AT_THE_ROOT: Mapping[str, set[str]] = {
    "capabilities": {
        *("apps", "models", "urls"),  # Django looks for them here
        *(
            "access",
            "acts",
            "body_limits",
            "connections",
            "fair_slots",
            "json_bodies",
            "doubts",
            "errors",
            "labels",
            "last_use",
            "signing",
            "ports",
            "secrets",
            "quantities",
            "sentences",
        ),  # the app shares them
    },
    "artifacts": {
        *("apps", "models", "urls"),  # Django looks for them here
        *("actions", "preview", "sniffer"),  # rooms of one module
    },
    "routing_admin": {
        *("apps", "asgi", "settings", "urls"),  # Django looks for them here
        *("environment", "wiring"),  # the whole package shares them
    },
}
"""What stands at the root of each app beside its rooms."""

PARTICIPLES = {
    *("told", "shown", "listed", "said", "seen", "heard", "asked", "given", "done", "known", "found", "made"),
    *("kept", "taken", "went", "wanted", "meant", "written", "tried", "stray", "elsewhere"),
}
"""Words that name neither a thing nor an act; a function is a verb, a class, field or parameter a noun.

A name inside one function may be one of them: its few lines say what was found.
"""


def house() -> dict[str, str]:
    """The house as it stands."""
    files = [file for app in APPS for file in sorted((ROOT / app).rglob("*.py")) if "migrations" not in file.parts]
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


def templates() -> dict[str, str]:
    """The templates as they stand, by path."""
    files = sorted((ROOT / "templates").rglob("*.html"))
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


@cache
def parse(source: str) -> ast.Module:
    """The syntax tree of a source; every check reads the same house."""
    return ast.parse(source)


def definitions(sources: House) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every class and function of the modules themselves, with its path; what stands inside another is left out."""
    for path, source in sources.items():
        for node in parse(source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def singular(word: str) -> str:
    """A name without the ending that makes it many."""
    return word.removesuffix("s")


def class_names_that_stand_twice(sources: House) -> list[str]:
    """One class name, one meaning, in the whole program; private ones count, too."""
    places = defaultdict(set)
    for path, node in definitions(sources):
        if isinstance(node, ast.ClassDef):
            places[node.name.lstrip("_")].add(path)
    return [f"{name}: {', '.join(sorted(at))}" for name, at in places.items() if len(at) > 1 and name not in TWICE]


def modules_without_a_question(sources: House) -> list[str]:
    """No module is a drawer: its name says what it answers."""
    return [path for path in sources if PurePosixPath(path).stem in NO_NAMES and path not in DJANGO_S_NAMES]


def modules_named_like_their_folder(sources: House) -> list[str]:
    """`fallback/table.py`, not `fallback/fallback_table.py`; `chat/completions.py`, not `chat/chat.py`."""
    found = []
    for path in map(PurePosixPath, sources):
        folder = singular(path.parent.name)
        if folder in (singular(path.stem), *path.stem.split("_")) and path.parent.name not in APPS:
            found.append(str(path))
    return found


def rooms_that_ask_nothing(sources: House) -> list[str]:
    """The first sentence of a room is the question that it answers."""
    rooms = [path for path in sources if PurePosixPath(path).name == "__init__.py"]
    texts = {path: ast.get_docstring(parse(sources[path])) or "" for path in rooms}
    return [path for path, text in texts.items() if "?" not in text.partition(". ")[0]]


def strangers_at_the_root(sources: House) -> list[str]:
    """What stands beside an app's rooms is written out, each with its reason."""
    paths = [PurePosixPath(path) for path in sources]
    return [
        str(path)
        for path in paths
        if len(path.parts) == 2 and path.stem != "__init__" and path.stem not in AT_THE_ROOT[path.parts[0]]
    ]


def names_of(node: ast.AST) -> Iterator[str]:
    """The names that a class, function or assignment gives to what others see: its own, of parameters, of fields."""
    if isinstance(node, ast.ClassDef):
        yield node.name
        for line in node.body:
            targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        yield from (argument.arg for argument in every if argument is not None)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr


@cache
def given_names(source: str) -> tuple[str, ...]:
    """Every name that a source gives to what others see, once."""
    return tuple(dict.fromkeys(name for node in ast.walk(parse(source)) for name in names_of(node)))


def participles(sources: House) -> list[str]:
    """A function is named by what it does, all else by what it is: `render_card`, `CardView`, never `shown`."""
    return [
        f"{path}: {name}"
        for path, source in sources.items()
        for name in given_names(source)
        if name.strip("_").lower() in PARTICIPLES
    ]


def template_participles(sources: House) -> list[str]:
    """What a template shows is called what it is, too: `{{ stop.details }}`, never `{{ stop.said }}`."""
    return [
        f"{path}: {name}"
        for path, source in sources.items()
        for name in dict.fromkeys(name for tag in TAG.findall(source) for name in NAME.findall(QUOTED.sub("", tag)))
        if name in PARTICIPLES
    ]


PLANTED: tuple[tuple[Callable[[House], list[str]], str, str], ...] = (
    (class_names_that_stand_twice, "artifacts/views/wards.py", "class Principal: ..."),
    (class_names_that_stand_twice, "artifacts/views/wards.py", "class _Principal: ..."),
    (modules_without_a_question, "capabilities/core/texts/utils.py", ""),
    (modules_named_like_their_folder, "routing_admin/core/fallback/fallback_table.py", ""),
    (modules_named_like_their_folder, "routing_admin/gateway/chat/chat.py", ""),
    (modules_named_like_their_folder, "routing_admin/actions/action.py", ""),
    (rooms_that_ask_nothing, "routing_admin/attic/__init__.py", '"""Things."""'),
    (rooms_that_ask_nothing, "routing_admin/attic/__init__.py", ""),
    (strangers_at_the_root, "routing_admin/attic.py", ""),
    (participles, "artifacts/views/wards.py", "def shown(): ..."),
    (participles, "artifacts/views/wards.py", "class _Seen: ..."),
    (participles, "artifacts/views/wards.py", "class Ward:\n    def told(self): ..."),
    (participles, "artifacts/views/wards.py", "class Ward:\n    seen: int = 0"),
    (participles, "artifacts/views/wards.py", "class Ward:\n    kept = 0"),
    (participles, "artifacts/views/wards.py", "def render(row):\n    row._found = 0"),
    (participles, "artifacts/views/wards.py", "def render(row, *, wanted=None): ..."),
    (participles, "artifacts/views/wards.py", "def render(**said): ..."),
)
"""A check, and a file that it must not let stand."""

CHECKS = tuple(dict.fromkeys(check for check, _, _ in PLANTED))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house_keeps_its_names(check: Callable[[House], list[str]]) -> None:
    """Each law is the docstring of its check."""
    assert check(house()) == []


@pytest.mark.parametrize(("check", "path", "source"), PLANTED)
def test_a_name_that_breaks_a_law_is_caught(check: Callable[[House], list[str]], path: str, source: str) -> None:
    """One file more in the house as it stands, and its check names it."""
    found = check({**house(), path: source})
    assert len(found) == 1
    assert path in found[0]


def test_templates_keep_their_names() -> None:
    """The law is the docstring of the check."""
    assert template_participles(templates()) == []


@pytest.mark.parametrize(
    "source", ["{{ row.said }}", "{% for one in listed %}", "{{ row|listed }}", "{% include 'a.html' with made=row %}"]
)
def test_a_template_s_name_that_breaks_the_law_is_caught(source: str) -> None:
    """One template more in the house as it stands; text, quotes and comments are no names."""
    plain = {"templates/plain.html": '<b class="said">{% translate "Nothing found" %} {# as made #} said</b>'}
    found = template_participles({**templates(), **plain, "templates/ward.html": source})
    assert len(found) == 1
    assert "templates/ward.html" in found[0]


def test_every_exception_is_still_needed() -> None:
    """A name that stands once, a module that is gone: its exception goes with it."""
    sources = house()
    classes = [node.name for _, node in definitions(sources) if isinstance(node, ast.ClassDef)]
    assert [name for name in TWICE if classes.count(name) < 2] == []
    assert [path for path in DJANGO_S_NAMES if path not in sources] == []
    named = {(app, name) for app, names in AT_THE_ROOT.items() for name in names}
    gone = [
        f"{app}/{name}" for app, name in named if not {f"{app}/{name}.py", f"{app}/{name}/__init__.py"} & set(sources)
    ]
    assert gone == []
