"""Find the code that may parse text from outside: regular expressions, and functions whose only argument is text."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import logging
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("capabilities", "artifacts", "routing_admin")
AT_BEGINNING = ("match", "fullmatch")
METHODS = frozenset({*AT_BEGINNING, "search", "sub", "subn", "findall", "finditer", "split"})
USES_METHOD = re.compile(rf"\.({'|'.join(METHODS)})\b")
NOT_IMPORTED = re.compile(r"migrations|management|__main__|identity_adapter|/demo/")
BUDGET = 0.05
"""CPU seconds allowed for 64 KiB, on a machine that takes `REFERENCE` seconds for the pattern in `_slowness`."""
REFERENCE = 0.004
FULL, SMALL = 64 * 1024, 8 * 1024
SUSPICIOUS = 0.001
"""If a call takes fewer CPU seconds than this for `SMALL` characters, it stays within the budget for `FULL` characters
even if its cost is quadratic.
"""
TOLERANCE = 4
ATTEMPTS = 10
"""Maximum number of attempts. A slow call exceeds the budget in all of them; even on a busy machine, a fast call does
not.
"""
MAX_STOPS = 2
"""A call that was stopped this often, each time at twice the tolerated time, is slow. A busy machine alone would not
explain this.
"""


@cache
def sources() -> Mapping[str, str]:
    paths = [path.relative_to(ROOT) for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]
    imported = [path for path in paths if not NOT_IMPORTED.search(path.as_posix())]
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): (ROOT / path).read_text() for path in imported
    }


class PatternUse(dict[tuple[Any, int], tuple[re.Pattern[Any], str, set[str]]]):
    """Maps the text and flags of each pattern to the compiled pattern, its location, and the methods called on it.

    The methods are `match`, `fullmatch` and `sub`, where `sub` means all methods that search within a text.
    """

    def note(self, where: str, value: Any, methods: set[str], depth: int = 0) -> None:
        if isinstance(value, re.Pattern):
            self.setdefault((value.pattern, value.flags), (value, where, set()))[2].update(methods)
        elif depth < 4:
            for part in _contained_values(value):
                self.note(where, part, methods, depth + 1)


def _contained_values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in fields(value)]
    return []


def patterns() -> PatternUse:
    """Return the compiled patterns in all modules and the literal patterns in calls of the `re` functions."""
    uses, imported = _uses_and_imports()
    found = PatternUse()
    for module in sources():
        named = vars(importlib.import_module(module)).items()
        for name, value in [item for item in named if _has_pattern(item[1])]:
            methods = set().union(*(uses[user, name] for user in (module, *imported[module, name])))
            methods = methods or set().union(
                *(used for (user, variable), used in uses.items() if user == module and variable.islower())
            )
            found.note(f"{module}.{name}", value, methods or {"sub"})
    for module, call in _calls_of_re():
        if isinstance(call.args[0], ast.Constant):
            flags = [flag.attr for flag in ast.walk(call) if isinstance(flag, ast.Attribute) and flag.attr.isupper()]
            compiled = re.compile(call.args[0].value, sum(getattr(re, flag) for flag in flags))
            found.note(f"{module}:{call.lineno}", compiled, {_how(call.func.attr)})  # type: ignore[attr-defined]
    return found


def _has_pattern(value: Any, depth: int = 0) -> bool:
    return isinstance(value, re.Pattern) or (
        depth < 4 and any(_has_pattern(part, depth + 1) for part in _contained_values(value))
    )


def computed_patterns() -> list[str]:
    """Return the calls of `re` functions whose pattern is computed, which `patterns` cannot find."""
    return [
        f"{module}: {ast.unparse(call)}"
        for module, call in _calls_of_re()
        if not isinstance(call.args[0], ast.Constant)
    ]


def _how(method: str) -> str:
    return method if method in AT_BEGINNING else "sub"


@cache
def _nodes() -> list[tuple[str, ast.Attribute | ast.Call | ast.ImportFrom]]:
    """Return the attributes, calls and imports of modules that use a pattern. Other modules are not parsed."""
    return [
        (module, node)
        for module, source in sources().items()
        if USES_METHOD.search(source)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute | ast.Call | ast.ImportFrom)
    ]


def _calls_of_re() -> list[tuple[str, ast.Call]]:
    return [
        (module, node)
        for module, node in _nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in METHODS
        and ast.unparse(node.func.value) == "re"
    ]


def _uses_and_imports() -> tuple[defaultdict[tuple[str, str], set[str]], defaultdict[tuple[str, str], list[str]]]:
    """Map each name in a module to the methods that are called on it, and to the modules that import it."""
    uses: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    imported: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for module, node in _nodes():
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            name = getattr(node.value, "id", getattr(node.value, "attr", ""))
            uses[module, name].add(_how(node.attr))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                imported[node.module, alias.name].append(module)
    return uses, imported


def functions_of_one_text(belongs: Callable[[str], bool]) -> dict[str, tuple[Callable[[Any], Any], bool]]:
    """Return the functions whose only required argument is text, and whether this text is `bytes`."""
    found: dict[str, tuple[Callable[[Any], Any], bool]] = {}
    for module in filter(belongs, sources()):
        for name, value in vars(importlib.import_module(module)).items():
            if inspect.isfunction(value) and value.__module__ == module:
                needed = [
                    parameter
                    for parameter in inspect.signature(value).parameters.values()
                    if parameter.default is parameter.empty
                ]
                if len(needed) == 1 and needed[0].annotation in ("str", "str | None", "bytes"):
                    found[f"{module}.{name}"] = (value, needed[0].annotation == "bytes")
    return found


class OverBudgetError(BaseException):
    """Raised in a call that exceeds its CPU time. It is not derived from `Exception`, so that the call's handlers do
    not catch it.
    """


@contextmanager
def without_logging() -> Iterator[None]:
    """Disable logging, because it takes a lock for each record, and a call that takes locks must not be stopped."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def cpu_seconds(call: Callable[[], Any], limit: float = 4 * BUDGET) -> float:
    """Return the CPU seconds that the call takes. It is stopped after about `limit` seconds, or never if that is 0.

    A call that takes locks must not be stopped: other threads would wait forever for a lock that it still holds.
    """

    def end(*_: Any) -> None:
        raise OverBudgetError

    before = signal.signal(signal.SIGVTALRM, end)
    # A garbage collection would visit every object that the tests have loaded, and take longer than the budget.
    gc.disable()
    started = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        with suppress(Exception):  # If the call rejects the text with an error, the time until then counts.
            call()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except OverBudgetError:
        return limit
    finally:
        gc.enable()
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - started


def is_slow(call: Callable[[Any], Any], text_of: Callable[[int], Any], full: int = FULL) -> bool:
    """Return whether the call exceeds its CPU budget for `full` characters in every one of `ATTEMPTS` attempts.

    Since processors differ, a cost that is linear in the text's length may reach `TOLERANCE` times the budget.
    """
    small = text_of(min(SMALL, full))
    if any(cpu_seconds(lambda: call(small), 2 * SUSPICIOUS) < SUSPICIOUS for _ in range(2)):
        return False
    large = text_of(full)
    if cpu_seconds(lambda: call(large), BUDGET) < BUDGET:
        return False
    in_step = 1.5 * len(large) / max(1, len(small))
    stops = 0
    for _ in range(ATTEMPTS):
        allowed = BUDGET * _slowness()
        tolerated = TOLERANCE * allowed
        linear = min(tolerated, in_step * cpu_seconds(lambda: call(small), tolerated / max(1.0, in_step)))
        seconds = cpu_seconds(lambda: call(large), 2 * tolerated)
        if seconds <= max(allowed, linear):
            return False
        stops += seconds >= 2 * tolerated
        if stops == MAX_STOPS:
            break
    return True


def exceeds_budget(call: Callable[[], Any]) -> bool:
    """Return whether the call, which is never stopped, exceeds its CPU budget in every one of `ATTEMPTS` attempts."""
    return all(cpu_seconds(call, 0) > BUDGET * _slowness() for _ in range(ATTEMPTS))


def _slowness() -> float:
    """Return how many times slower than the reference this machine is at the moment, from 1 to 8."""
    text, pattern = "a1 " * (FULL // 3), re.compile(r"(\w)(?=\d)")
    return min(8.0, max(1.0, cpu_seconds(lambda: pattern.sub("x", text)) / REFERENCE))
