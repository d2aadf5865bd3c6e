"""Choose mutants and the tests that judge them: tests of the same area, the nearest in the import graph first."""

from __future__ import annotations

import ast
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.house.test_tests import OF_THE_WHOLE_REPOSITORY
from tests.mutants.mutations import Mutation, find_mutations, is_sound

ROOT = Path(__file__).resolve().parents[2]
AREAS = (
    *("capabilities/core/delivery", "capabilities/core/protocols", "capabilities/core", "capabilities/access.py"),
    *("artifacts/core", "routing_admin/core", "routing_admin/limits", "routing_admin/platform/auth"),
    *("routing_admin/dispatch", "routing_admin/upstream", "routing_admin/gateway"),
)
"""Files and folders to mutate. Each file belongs to the first area that contains it."""
FOLDERS: Mapping[str, Sequence[str]] = {"capabilities/access.py": ("permissions", "server", "api")}
"""Maps modules to their test folders if no test folder is named after the module or a package that contains it."""
Graph = Mapping[str, Sequence[str]]
"""Maps each of the project's modules to the project's modules that it imports."""
TOPS = ("capabilities", "artifacts", "routing_admin", "tests")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    area: str
    path: str
    mutation: Mutation


def choose(seed: int, count: int, only: str = "") -> list[Mutant]:
    """Return `count` mutants, spread evenly over the areas and over the files in each area.

    The choice within one area does not depend on other areas.
    """
    queues = [_iterate_mutants(area, only, random.Random(f"{seed} {area}")) for area in AREAS]
    chosen: list[Mutant] = []
    while queues and len(chosen) < count:
        for queue in list(queues):
            mutant = next(queue, None)
            if mutant is None:
                queues.remove(queue)
            elif len(chosen) < count:
                chosen.append(mutant)
    return sorted(chosen, key=lambda mutant: (AREAS.index(mutant.area), mutant.path, mutant.mutation.line))


def find_area(path: str) -> str | None:
    return next((area for area in AREAS if path == area or path.startswith(f"{area}/")), None)


def _iterate_mutants(area: str, only: str, chance: random.Random) -> Iterator[Mutant]:
    files = [ROOT / area] if area.endswith(".py") else sorted((ROOT / area).rglob("*.py"))
    paths = [path.relative_to(ROOT).as_posix() for path in files]
    paths = [path for path in paths if path.startswith(only) and find_area(path) == area]
    chance.shuffle(paths)
    left: dict[str, list[Mutation]] = {}
    while paths:
        for path in list(paths):
            source = (ROOT / path).read_bytes()
            if path not in left:
                left[path] = find_mutations(source)
                chance.shuffle(left[path])
            mutation = _take(left[path], source, chance)
            if mutation:
                yield Mutant(area=area, path=path, mutation=mutation)
            else:
                paths.remove(path)


def _take(left: list[Mutation], source: bytes, chance: random.Random) -> Mutation | None:
    """Remove a mutation from the list and return it. All kinds are equally likely, although most mutations change an
    integer.
    """
    while left:
        kind = chance.choice(sorted({mutation.kind for mutation in left}))
        taken = next(mutation for mutation in left if mutation.kind == kind)
        left.remove(taken)
        if is_sound(taken, source):
            return taken
    return None


def group_tests(path: str, graph: Graph) -> list[list[str]]:
    """Return four groups of test files: those named like the module, those that import it, those that import from its
    package, and the others.

    The tests are those in the folder with the name of the module or of its innermost package. If none of them imports
    the module, the nearest tests of other folders are added. Each group is sorted by distance in imports.
    """
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    near = _distances(module, graph)
    tests = [name for name in graph if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")]
    folder_of = {name: name.split(".")[1] for name in tests if name.count(".") > 1}
    named = [part for part in reversed(module.split(".")) if part in folder_of.values()][:1]
    folders = FOLDERS.get(path, named)
    files = [name for name, folder in folder_of.items() if folder in folders]
    if not any(near.get(name) == 1 for name in files):
        others = [name for name, folder in folder_of.items() if folder not in OF_THE_WHOLE_REPOSITORY and name in near]
        closest = min((near[name] for name in others), default=0)
        files += [name for name in others if near[name] == closest and name not in files]
    files.sort(key=lambda name: (near.get(name, len(graph)), [*folders, folder_of[name]].index(folder_of[name]), name))
    package = module.rpartition(".")[0]
    groups: list[list[str]] = [[], [], [], []]
    for name in files:
        distance = 2 if any(_below(imported, package) for imported in graph[name]) else 3
        group = 0 if _words(module) & _words(name) else 1 if near.get(name) == 1 else distance
        groups[group].append(name.replace(".", "/") + ".py")
    return [group for group in groups if group]


def _words(module: str) -> set[str]:
    """Return the words of the module's name in the singular."""
    return {word.removesuffix("s") for word in module.rpartition(".")[2].split("_")} - {"test", "served"}


def _below(module: str, package: str) -> bool:
    """Return whether the module is in the package.

    False for whole apps and their `core`, because they are too large.
    """
    return package.count(".") > 1 and f"{module}.".startswith(f"{package}.")


def _distances(module: str, graph: Graph) -> Mapping[str, int]:
    importers: dict[str, list[str]] = {}
    for name, imported in graph.items():
        for target in imported:
            importers.setdefault(target, []).append(name)
    distances, waiting = {module: 0}, deque([module])
    while waiting:
        name = waiting.popleft()
        for importer in importers.get(name, ()):
            if importer not in distances:
                distances[importer] = distances[name] + 1
                waiting.append(importer)
    return distances


@cache
def imports() -> Graph:
    sources = [path for top in TOPS for path in (ROOT / top).rglob("*.py")]
    modules = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources}
    known = {name.removesuffix(".__init__") for name in modules.values()}
    graph = {}
    for path, name in modules.items():
        found = []
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        graph[name.removesuffix(".__init__")] = [module for module in dict.fromkeys(found) if module in known]
    return graph
