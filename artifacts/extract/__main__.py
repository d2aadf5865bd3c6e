"""Entry point of the extraction process: `python __main__.py OPERATION OPTIONS QUICK_SECONDS YIELDS_AT_ONCE < file`.

Standard output is one line of JSON, which includes the payload's length in bytes, followed by the payload.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

if not __package__:
    # This module is run by its path, so it has no package. Create the readers' package without its `__init__`, which is
    # meant for the web process and would take a third of the processing time of a small file.
    folder = Path(__file__).resolve().parent
    sys.path[0] = str(folder.parents[1])
    sys.modules["artifacts.extract"] = package = ModuleType("artifacts.extract")
    package.__path__ = [str(folder)]

from artifacts.extract.confine import limit, refuse
from artifacts.extract.reading import RefusedError
from artifacts.extract.sandbox import apply_sandbox

OPERATIONS = {
    "text": "documents",
    "image": "images",
    "facts": "measures",
    "pages": "pages",
    "frames": "frames",
    "attachment": "attachments",
}
"""Maps operations to the module whose `answer(file, options)` performs them. The module is imported under resource
limits."""

LIBRARIES = {"application/pdf": "pypdf"}
"""Maps file types to libraries that the `facts` operation needs, but that its module imports only when they are
used."""

USES_CTYPES = ("pages", "pdf")
"""The operation (`pages`) and the reader (`pdf`) that use pypdfium2, which passes memory to its native library through
ctypes."""


def main(arguments: list[str], source: BinaryIO, sink: BinaryIO, sandbox: Mapping[str, object]) -> None:
    """Perform one operation and write its result. If it fails, write a result with a `reason`."""
    operation, options = arguments[0], json.loads(arguments[1])
    payload = b""
    try:
        header, payload = import_module(f"artifacts.extract.{OPERATIONS[operation]}").answer(source, options)
    except RefusedError as refusal:
        header = {"reason": str(refusal)}
    except MemoryError:
        header = {"reason": "too_large"}
    except Exception:  # A parser may raise any exception on a hostile file, and the parent process needs only a reason.
        header = {"reason": "failed"}
    sink.write(json.dumps({**header, "sandbox": sandbox, "bytes": len(payload)}).encode() + b"\n" + payload)
    sink.flush()


def load(operation: str, options: Mapping[str, Any]) -> None:
    """Import the operation's modules before the sandbox applies, because it may block packages in unusual folders."""
    module = import_module(f"artifacts.extract.{OPERATIONS[operation]}")
    if operation == "text":
        import_module(f"artifacts.extract.{module.READERS[options['reader']][0]}")
    if library := LIBRARIES.get(options.get("mime_type", "")):
        import_module(library)


def enter_sandbox(
    operation: str, options: Mapping[str, Any], quick_seconds: float = 0, *, yields_at_once: bool = False
) -> dict[str, object]:
    """Apply the resource limits and the sandbox to this process. Return the result of `apply_sandbox`."""
    limit(quick_seconds, yields_at_once=yields_at_once)
    with suppress(Exception):  # If an import fails, it fails again in the operation, which reports the error.
        load(operation, options)
    sandbox = apply_sandbox()
    refuse(uses_ctypes=operation in USES_CTYPES or options.get("reader") in USES_CTYPES)
    return sandbox


if __name__ == "__main__":
    closed = enter_sandbox(
        sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3]), yields_at_once=bool(int(sys.argv[4]))
    )
    main(sys.argv[1:3], sys.stdin.buffer, sys.stdout.buffer, closed)
    os._exit(0)  # The result has been written, and an ordinary exit would first free every module's objects.
