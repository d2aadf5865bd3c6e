"""At least one test covers each of the specification's requirements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MCR = (
    "1.1 1.2 1.3 1.4 1.5 2.1 2.2 2.3 2.4 2.5 2.6 3.1 3.2 3.3 3.4 3.5 3.6 4.1 4.2 4.3 4.4 5.1 5.2 5.3 5.4 5.5 "
    "6.1 6.2 6.3 6.4 P1 P2 P3 P4 P5 P6 P7 E1 E2 E3 E4"
)
ABR = (
    "1.1 1.2 1.3 1.4 1.5 2.1 2.2 2.3 2.4 3.1 3.2 3.3 3.4 4.1 4.2 4.3 4.4 5.1 5.2 5.3 6.1 6.2 6.3 6.4 7.1 7.2 7.3 "
    "7.4 7.5 8.1 8.2 8.3 8.4 INV1 INV2 INV3 INV4 INV5 P1 P2 P3"
)
MMR = "P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 E1 E2 E3 E4 E5"
REQUIREMENTS = frozenset(
    f"{prefix}-{number}" for prefix, numbers in (("MCR", MCR), ("ABR", ABR), ("MMR", MMR)) for number in numbers.split()
)


def requirements_in(tree: ast.AST) -> Iterator[str]:
    """Yield the ids in every `@pytest.mark.requirement(…)` of a test file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


def test_tests_name_every_requirement_and_no_unknown_requirement() -> None:
    tested = {
        name
        for path in HERE.rglob("test_*.py")
        for name in requirements_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert sorted(REQUIREMENTS - tested) == []
    assert sorted(tested - REQUIREMENTS) == []
