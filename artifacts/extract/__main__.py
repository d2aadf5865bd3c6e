"""Entry point of the extraction process: `python -m artifacts.extract OPERATION OPTIONS QUICK_SECONDS < file`.

The result on standard output is one line of JSON with the number of bytes that follow, and then these bytes.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

if __name__ == "__main__" and not __package__:
    # If the module is run by its path, it has no package, so the repository's root is made importable.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from artifacts.extract.confine import limit, refuse
from artifacts.extract.words import RefusedError

OPERATIONS = {"text": "documents", "image": "images", "facts": "measures", "pages": "pages"}
"""Operation → the module whose `answer(file, options)` performs it, imported under the limits."""

LOADED_FIRST = {"pages": "pypdfium2"}
"""Operation → the package that loads a library with ctypes, which is forbidden once bytes are read."""


def main(arguments: list[str], source: BinaryIO, sink: BinaryIO) -> None:
    """Perform one operation and write its result. A failure is a result with a `reason`."""
    operation, options = arguments[0], json.loads(arguments[1])
    payload = b""
    try:
        header, payload = import_module(f"artifacts.extract.{OPERATIONS[operation]}").answer(source, options)
    except RefusedError as refusal:
        header = {"reason": str(refusal)}
    except MemoryError:
        header = {"reason": "too_large"}
    except Exception:  # a parser may raise anything on a hostile file, and the parent only needs a reason
        header = {"reason": "failed"}
    sink.write(json.dumps({**header, "bytes": len(payload)}).encode() + b"\n" + payload)
    sink.flush()


if __name__ == "__main__":
    limit(float(sys.argv[3]))
    if sys.argv[1] in LOADED_FIRST:
        import_module(LOADED_FIRST[sys.argv[1]])
    refuse(uses_ctypes=sys.argv[1] in LOADED_FIRST)
    main(sys.argv[1:3], sys.stdin.buffer, sys.stdout.buffer)
