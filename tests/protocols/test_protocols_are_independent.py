"""The code for each vendor's protocol can be read, changed and removed without the others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from capabilities.core import protocols
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.wire import Failure, Fault, Finish, Target
from tests.lab.shapes import VENDORS
from tests.protocols.test_echo_provider import CHAT

FOLDER = Path(protocols.__file__).parent
PACKAGE = protocols.__name__
SHARED = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}


def protocol_folder(protocol: str) -> Path:
    return FOLDER / protocol.replace("-", "_")


def imported(path: Path) -> set[str]:
    """Return the subpackages and modules of the protocols package that the file imports."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            modules.add((node.module or "").removeprefix(f"{PACKAGE}.").partition(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            modules |= {alias.name for alias in node.names}
    return modules


@pytest.mark.parametrize("vendor", list(PROTOCOLS))
def test_protocol_package_imports_no_other_protocol(vendor: str) -> None:
    files = sorted(protocol_folder(vendor).glob("*.py"))
    assert len(files) > 1
    for path in files:
        assert imported(path) <= {protocol_folder(vendor).name} | SHARED, path.name


@pytest.mark.parametrize("vendor", list(PROTOCOLS))
def test_every_protocol_has_request_reply_and_stream_modules(vendor: str) -> None:
    modules = {path.stem for path in protocol_folder(vendor).glob("*.py")}
    assert modules >= {"requests", "replies", "stream"}


def test_shared_protocol_modules_import_no_protocol() -> None:
    assert "stream" in SHARED
    for name in SHARED:
        assert not imported(FOLDER / f"{name}.py") & {protocol_folder(protocol).name for protocol in PROTOCOLS}, name


@pytest.mark.parametrize("name", list(PROTOCOLS))
@pytest.mark.parametrize("stream", [False, True])
def test_encoding_the_same_request_twice_gives_the_same_bytes(name: str, stream: bool) -> None:
    """Encoding uses no clock and no random numbers, and does not modify the request, so a preview equals what is
    sent.
    """
    target = Target("p", "https://llm.example/v1", "m", "k")
    first, second = (PROTOCOLS[name].encode(CHAT, target, stream=stream) for _ in range(2))
    assert (first.url, first.elide(), first.content_length) == (second.url, second.elide(), second.content_length)
    assert PROTOCOLS[name].name == name


@pytest.mark.parametrize("name", list(VENDORS))
def test_stream_without_events_is_a_stream_empty_failure(name: str) -> None:
    (event,) = PROTOCOLS[name].decoder().close()
    assert not isinstance(event, Finish)
    assert isinstance(event, Failure)
    assert event.fault is Fault.STREAM_EMPTY
