"""Value classes are frozen only for the type checker, but otherwise behave like frozen dataclasses."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.values import value_class
from capabilities.core.wire import Usage


@value_class
class Light:
    name: str
    number: int = 1


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    number: int = 1


def test_values_are_compared_and_hashed_by_fields():
    assert (Light("a"), hash(Light("a", 2))) == (Light("a", 1), hash(Light("a", 2)))
    assert Light("a") != Light("b")
    assert len({Light("a"), Light("a"), Light("b")}) == len({Frozen("a"), Frozen("a"), Frozen("b")}) == 2
    assert repr(Light("a")) == "Light(name='a', number=1)"


def test_value_rejects_undeclared_attributes():
    with pytest.raises(AttributeError):
        Light("a").other = 1  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        Frozen("a").number = 2  # type: ignore[misc]


def test_value_supports_replace_copy_and_pickle():
    usage = replace(Usage(), prompt_tokens=3)
    request = ChatRequest((Message(Role.USER, (TextPart("hello"),)),))
    assert (usage.prompt_tokens, Usage().prompt_tokens) == (3, None)
    assert copy.deepcopy(request) == pickle.loads(pickle.dumps(request)) == request


def test_type_checker_rejects_assignment_to_a_value(tmp_path: Path):
    program = tmp_path / "changes.py"
    program.write_text("from capabilities.core.wire import Usage\n\nusage = Usage()\nusage.prompt_tokens = 3\n")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(tmp_path), str(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 'Property "prompt_tokens" defined in "Usage" is read-only' in result.stdout
