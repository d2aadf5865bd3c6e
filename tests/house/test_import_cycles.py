"""No module imports itself through other modules.

The import contracts check only packages, and do not cover the packages within the console.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp

APPS = ("capabilities", "artifacts", "routing_admin")


def find_circle(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules of an import cycle, with the first one repeated at the end.

    The result is empty if there is no cycle.
    """
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_is_in_an_import_cycle() -> None:
    graph = grimp.build_graph(*APPS, exclude_type_checking_imports=True, cache_dir=None)
    assert find_circle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}) == []


def test_planted_import_cycle_is_found() -> None:
    assert set(find_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()})) == {"a", "b", "c"}
