"""`python -m tests.mutants` changes one place in the code at a time, and only where a test could notice the change."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import changed_lines
from tests.mutants.child import swap_functions
from tests.mutants.choice import choose, group_tests
from tests.mutants.mutations import find_mutations, is_sound


def list_mutants(source: str) -> list[str]:
    encoded = source.encode()
    return [mutation.apply(encoded).decode() for mutation in find_mutations(encoded) if is_sound(mutation, encoded)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", "x = a <= b"),
        ("x = a is not b", "x = a is b"),
        ("x = (a) not in (b)", "x = (a) in (b)"),
        ("x = a and b and c", "x = a or b or c"),
        ("x = a or b", "x = a"),
        ("x = not (a or b)", "x = (a or b)"),
        ("x = [7]", "x = [8]"),
        ("x = a + b", "x = a - b"),
        ("def f():\n    return True", "def f():\n    return False"),
        ("def f(*, a=False): ...", "def f(*, a=True): ..."),
        ('x = {"é", "b", "c"}', 'x = {"b", "c"}'),
        ("for x in y:\n    if x:\n        continue\n    z()", "for x in y:\n    pass\n\n    z()"),
    ],
)
def test_each_kind_of_mutation_is_a_single_edit(source: str, expected: str) -> None:
    """`ast` counts columns in bytes, so multibyte characters before a node must not shift the edit."""
    assert expected in list_mutants(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""A text < another."""',
        "x: Literal[1, 2]",
        "def f(a: Sequence[1]) -> Tuple[2]: ...",
        'logger.warning("%s", 3)',
        'x = ngettext("one", "many", 1)',
        '__all__ = ("a", "b", "c")',
        "if TYPE_CHECKING:\n    x = [1]",
        "MAX_BYTES = 64 * 1024",
        'x = "a" + b',
        'x = f"{a:>10}"',
    ],
)
def test_code_without_testable_behaviour_is_not_mutated(source: str) -> None:
    """Type annotations, prose, log messages and tuning constants are not mutated."""
    assert list_mutants(source) == []


def test_mutation_does_not_shift_later_lines() -> None:
    """Removing a guard or a default that spans several lines does not change the number of lines."""
    guard, default = "    if (\n        a\n    ):\n        return 1\n", "    x = (\n        a\n        or 1.5\n    )\n"
    source = f"def f(a):\n{guard}{default}    return x\n"
    found = list_mutants(source)
    assert {text.count("\n") for text in found} == {source.count("\n")}
    assert all(text.splitlines()[-1] == "    return x" for text in found)


def test_surviving_mutant_is_shown_with_its_line_before_and_after() -> None:
    assert changed_lines(b"a = 1\nb = 2\n", b"a = 1\nb = 3\n") == ["  b = 2  →  b = 3"]


def test_same_seed_chooses_the_same_mutants_evenly_among_files() -> None:
    """Another seed chooses other mutants. Every file gets one mutant before any file gets a second."""
    chosen = choose(1, 6, "routing_admin/upstream")
    assert chosen == choose(1, 6, "routing_admin/upstream") != choose(2, 6, "routing_admin/upstream")
    assert set(Counter(mutant.path for mutant in chosen).values()) == {1}


def test_mutant_is_tested_by_the_nearest_tests_of_its_own_folder_first() -> None:
    module = "capabilities.core.protocols.urls"
    graph = {
        "tests.protocols.test_a": ["capabilities.core.values"],
        "tests.protocols.test_b": ["capabilities.core.protocols.media"],
        "tests.protocols.test_c": [module],
        "tests.gateway.test_d": [module],
    }
    expected = [[f"tests/protocols/test_{name}.py"] for name in "cba"]
    assert group_tests("capabilities/core/protocols/urls.py", graph) == expected


def test_test_files_named_like_the_module_are_run_first() -> None:
    graph = {
        "tests.protocols.test_a": ["capabilities.core.protocols.urls"],
        "tests.protocols.test_url_ends": [],
    }
    expected = [["tests/protocols/test_url_ends.py"], ["tests/protocols/test_a.py"]]
    assert group_tests("capabilities/core/protocols/urls.py", graph) == expected


def test_module_not_imported_by_its_own_folder_is_tested_by_importing_folders_first() -> None:
    graph = {
        "tests.protocols.test_a": ["capabilities.core.values"],
        "tests.gateway.test_d": ["capabilities.core.protocols.urls"],
        "tests.gateway.test_e": [],
    }
    expected = [["tests/gateway/test_d.py"], ["tests/protocols/test_a.py"]]
    assert group_tests("capabilities/core/protocols/urls.py", graph) == expected


def test_functions_are_swapped_even_after_gc_freeze(tmp_path: Path) -> None:
    path = tmp_path / "frozen.py"
    module: dict[str, Any] = {}
    path.write_text("def answer():\n    return 1\n")
    exec(compile(path.read_bytes(), str(path), "exec"), module)
    gc.freeze()
    assert swap_functions(path, b"def answer():\n    return 2\n")
    gc.freeze()  # Restore the state that tests/conftest.py sets up when the tests are collected.
    assert module["answer"]() == 2
