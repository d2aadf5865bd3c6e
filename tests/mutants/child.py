"""A pytest plugin that judges mutants: a single one in a changed file, or many in forks that replace functions' code.

Cheap tests run first, property tests repeat the same examples, and no test starts after the mutant's time is up.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import settings

from tests.mutants.mutations import Mutation

HANGS_AFTER = 60.0
"""A test that is still running this many seconds after the mutant's time is up counts as failed."""
DEADLINE = pytest.StashKey[float]()
Key = tuple[str, int]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, default=60.0, help="for how long tests are started")
    parser.addoption("--mutants", help="a JSON file with mutants and the tests of each")
    parser.addoption("--verdicts", help="the file to which a line of JSON is added for each")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from tests.conftest import NEEDS_MORE  # tests.conftest can be imported only after Django's settings.

    items.sort(key=lambda item: bool(NEEDS_MORE & set(getattr(item, "fixturenames", ()))))
    settings.register_profile("mutants", settings.get_profile("default"), derandomize=True, database=None)
    settings.load_profile("mutants")
    config.stash[DEADLINE] = time.monotonic() + config.getoption("--seconds")


def pytest_runtest_protocol(item: pytest.Item) -> None:
    if time.monotonic() > item.config.stash[DEADLINE]:
        pytest.exit("the time is over", returncode=0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """If `--mutants` is given, judge each of these mutants in a fork instead of running the collected tests."""
    if session.config.getoption("--mutants") is None:
        return None
    for mutant in json.loads(Path(session.config.getoption("--mutants")).read_text("utf-8")):
        with Path(session.config.getoption("--verdicts")).open("a") as verdicts:
            verdicts.write(json.dumps(_judge_in_fork(session, mutant)) + "\n")
    return True


def _judge_in_fork(session: pytest.Session, mutant: dict[str, Any]) -> dict[str, Any]:
    """Return the test that failed (`by`), the number of tests run, and whether functions were replaced (`swapped`)."""
    began, seconds = time.monotonic(), session.config.getoption("--seconds")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()  # In its own process group, a hanging child can be killed together with its servers.
        session.config.stash[DEADLINE] = began + seconds
        try:
            verdict = _judge(session, mutant)
        except pytest.exit.Exception:
            verdict = {"by": None}
        except BaseException:
            # No test raised this error, so run the mutant again with the mutation written to the source file.
            traceback.print_exc()
            verdict = {"by": None, "swapped": False}
        os.write(writing, json.dumps(verdict).encode())
        os._exit(0)
    os.close(writing)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > began + seconds + HANGS_AFTER:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with os.fdopen(reading, "rb") as pipe:
        verdict = json.loads(pipe.read() or '{"by": "a test that hangs"}')
    return {"ran": 0, "swapped": True, **verdict, "seconds": time.monotonic() - began}


def _judge(session: pytest.Session, mutant: dict[str, Any]) -> dict[str, Any]:
    path = session.config.rootpath / mutant["path"]
    source = path.read_bytes()
    edits = tuple((start, end, new.encode()) for start, end, new in mutant["edits"])
    if edits and not swap_functions(path, Mutation(kind="", line=0, edits=edits).apply(source)):
        return {"by": None, "swapped": False}
    ranks = {
        session.config.rootpath / file: (at, rank)
        for at, group in enumerate(mutant["groups"])
        for rank, file in enumerate(group)
    }
    places = {id(item): place for place, item in enumerate(session.items)}
    from tests.conftest import NEEDS_MORE

    def order(item: pytest.Item) -> tuple[int, bool, int, int]:
        group, rank = ranks[item.path]
        return group, bool(NEEDS_MORE & set(getattr(item, "fixturenames", ()))), rank, places[id(item)]

    items: Sequence[pytest.Item] = sorted((item for item in session.items if item.path in ranks), key=order)
    for ran, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True)):
        if time.monotonic() > session.config.stash[DEADLINE]:
            return {"by": None, "ran": ran}
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return {"by": item.nodeid, "ran": ran + 1}
    return {"by": None, "ran": len(items)}


def swap_functions(path: Path, source: bytes) -> bool:
    """Give the module's functions the code of the mutated source. Return False if anything else differs."""
    old, new = (compile(text, str(path), "exec", dont_inherit=True) for text in (path.read_bytes(), source))
    if _skeletons(old) != _skeletons(new):
        return False
    keys = Counter(_key(code) for code in _functions(new))
    codes = {_key(code): code for code in _functions(new) if keys[_key(code)] == 1}
    gc.unfreeze()  # `get_objects` omits the objects that tests/conftest.py has frozen.
    # Compare types, since `isinstance` would evaluate lazy objects.
    live = [function for function in gc.get_objects() if type(function) is FunctionType]
    known = {_key(code): code for code in _functions(old)}
    changed = {key for key in known if key not in codes or known[key] != codes[key]}
    found = [
        function
        for function in live
        if function.__code__.co_filename == str(path) and _key(function.__code__) in changed
    ]
    for function in found:
        if (key := _key(function.__code__)) not in codes:
            return False
        function.__code__ = codes[key]
    return bool(found)


def _key(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno


def _nested(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _functions(code: CodeType) -> Iterator[CodeType]:
    for nested in _nested(code):
        if nested.co_flags & 1:  # Bit 1 is `CO_OPTIMIZED`. Functions have it, and class bodies do not.
            yield nested
        yield from _functions(nested)


def _skeletons(code: CodeType) -> list[object]:
    plain = [None if isinstance(constant, CodeType) else (type(constant), constant) for constant in code.co_consts]
    own = [code.co_code, code.co_names, plain]
    return [own, *(_skeletons(nested) for nested in _nested(code) if not nested.co_flags & 1)]
