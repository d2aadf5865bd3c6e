"""`python -m tests.bench.bench_content`: delivery decisions, type detection, and a large file in a request body.

A body's time and memory are measured in a separate process and compared with the minimum: read, encode, write the file.
Memory is the peak resident memory that the kernel reports, minus that of an idle process.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.table import median, milliseconds, show

MIB = 1024 * 1024
SIZES = (1, 10, 25)
ROUNDS = 9
VARIANTS = ("floor", "json", "ours")
NAMES = {
    "floor": "floor: pybase64, one write",
    "json": "stdlib base64, json.dumps, write",
    "ours": "ours: prepare, pieces, blocks",
}
PNG = b"\x89PNG\r\n\x1a\n"


def resident(field: str) -> float:
    """Return this process's memory in MiB: the current value for `VmRSS`, or the peak for `VmHWM`."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match[1]) / 1024 if match else float("nan")


def in_this_process(variant: str, size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        work = {"floor": floor, "json": plain_json, "ours": gateway}[variant](Path(folder), size * MIB)
        before = resident("VmRSS")
        work()
        assert (Path(folder) / "body").stat().st_size > 4 * size * MIB // 3
        return {"mib": resident("VmHWM") - before, "ms": median(milliseconds(work, ROUNDS))}


def write_file(folder: Path, size: int) -> Path:
    path = folder / "media.png"
    block = bytes((n * 193 + n // 7) % 256 for n in range(64 * 1024))
    with path.open("wb") as file:
        file.write(PNG)
        for start in range(len(PNG), size, len(block)):
            file.write(block[: min(len(block), size - start)])
    return path


def floor(folder: Path, size: int) -> Callable[[], None]:
    import pybase64

    source, goal = write_file(folder, size), folder / "body"

    def run() -> None:
        with goal.open("wb", buffering=0) as file:
            file.write(pybase64.b64encode(source.read_bytes()))

    return run


def plain_json(folder: Path, size: int) -> Callable[[], None]:
    source, goal = write_file(folder, size), folder / "body"

    def run() -> None:
        url = f"data:image/png;base64,{base64.b64encode(source.read_bytes()).decode()}"
        part = {"type": "image_url", "image_url": {"url": url}}
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]})
        with goal.open("wb", buffering=0) as file:
            file.write(body.encode())

    return run


def gateway(folder: Path, size: int) -> Callable[[], None]:
    """Return a function that does the product's work: read the stored file, decide its delivery, and build the body."""
    from artifacts.storage.files import FileStore
    from capabilities.core.delivery.model_endpoint import Prepared, prepare
    from capabilities.core.message import Blob, ChatRequest, FilePart, Message, Role, TextPart
    from capabilities.core.vocabulary import Kind
    from routing_admin.upstream.bodies import request_blocks

    store, goal = FileStore(folder / "store"), folder / "body"
    with write_file(folder, size).open("rb") as file:
        stored = store.put(iter(lambda: file.read(64 * 1024), b""))

    content = Bytes(Blob(stored.size, lambda: store.open_blocks(stored.sha256)))
    part = FilePart(Kind.IMAGE, "image/png", "media.png", stored.size, "a" * 32, content=content)
    chat = ChatRequest((Message(Role.USER, (TextPart("What is this?"), part)),))
    endpoint, style = reader_of_everything()

    def run() -> None:
        prepared = prepare(chat, endpoint, style)
        assert isinstance(prepared, Prepared)
        with goal.open("wb", buffering=0) as file:
            for block in request_blocks(prepared.request.pieces()):
                file.write(block)

    store.verify(stored.sha256)  # The first call is not measured, because it also hashes every byte.
    return run


@dataclass(frozen=True)
class Bytes:
    bytes: Any

    def blob(self) -> Any:
        return self.bytes

    def text(self) -> None:
        pass

    def convert(self, target: object) -> None:
        pass


def reader_of_everything() -> tuple[Any, Any]:
    """Return a model endpoint that accepts files of every kind and size, and the texts used in file descriptions."""
    from capabilities.core.delivery.adaptation import TextStyle
    from capabilities.core.delivery.model_endpoint import model_endpoint
    from capabilities.core.vocabulary import Capabilities
    from capabilities.core.wire import Target

    target = Target("lab", "https://lab.example/v1/chat/completions", "m", "key")
    limits = {"image": {"maxBytes": 100 * MIB}}
    capabilities = Capabilities(("text", "vision", "audio", "video", "file"))
    return model_endpoint("openai", target, capabilities, limits=limits), TextStyle("en")


def bodies() -> None:
    rows: list[list[object]] = []
    for size in SIZES:
        measurements = {variant: in_own_process(variant, size) for variant in VARIANTS}
        for variant in VARIANTS:
            ms, mib = measurements[variant]["ms"], measurements[variant]["mib"]
            rows.append([f"{size} MiB, {NAMES[variant]}", ms, ms / measurements["floor"]["ms"], mib])
    show("An artifact into a request body", ["", "ms", "× floor", "MiB over baseline"], rows)


def in_own_process(variant: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_content", "--one", variant, str(size)]
    measurement: dict[str, float] = json.loads(
        subprocess.run(command, capture_output=True, check=True, text=True).stdout
    )
    return measurement


def decisions() -> None:
    """Print the table of delivery decisions: microseconds per file before its bytes are read."""
    from capabilities.core.delivery.adaptation import TextStyle, adapt
    from capabilities.core.delivery.decision import decide
    from capabilities.core.delivery.model_endpoint import model_endpoint
    from capabilities.core.message import ChatRequest, FilePart, Message, Role, TextPart, make_blob
    from capabilities.core.vocabulary import TEXT_ONLY, Capabilities, Kind
    from capabilities.core.wire import Target

    target = Target("lab", "https://lab.example/v1/chat/completions", "m", "key")
    readers = {
        "text model": model_endpoint("openai", target, TEXT_ONLY).reader,
        "vision model": model_endpoint("openai", target, Capabilities(("text", "vision"))).reader,
    }
    rows: list[list[object]] = []
    for kind, mime in ((Kind.IMAGE, "image/png"), (Kind.DOCUMENT, "application/pdf")):
        part = FilePart(kind, mime, "media", 1000, "a" * 32, content=Bytes(make_blob(b"x" * 1000)))
        chat = ChatRequest((Message(Role.USER, (TextPart("Look."), part)),))
        for name, reader in readers.items():
            work: dict[str, Callable[[], object]] = {
                "decide": partial(decide, part, reader),
                "adapt": partial(adapt, chat, reader, TextStyle("en")),
            }
            for operation, run in work.items():
                rows.append([f"{operation}: {kind.value} for a {name}", median(milliseconds(run, 5000)) * 1000])
    show("Deciding", ["", "µs a part"], rows)


def detections() -> None:
    """Print the table of type detection: all test samples together, and the ten slowest by name."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "artifacts"))
    from samples import SAMPLES

    from artifacts.sniffer import describe_sniffer, detector

    find = detector()
    measurements = []
    for sample in SAMPLES:
        run = partial(find.detect, sample.data, len(sample.data), None, sample.name)
        measurements.append((sample.name, len(sample.data), median(milliseconds(run, 5))))
    times = [ms for _, _, ms in measurements]
    rows: list[list[object]] = [[f"all {len(measurements)} samples, median", "", median(times)]]
    rows += [[name, size, ms] for name, size, ms in sorted(measurements, key=lambda measurement: -measurement[2])[:10]]
    show(f"Detecting ({describe_sniffer()})", ["", "bytes", "ms"], rows)


def main() -> None:
    decisions()
    detections()
    bodies()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "MIB"))
    one = parser.parse_args().one
    if one:
        print(json.dumps(in_this_process(one[0], int(one[1]))))
    else:
        main()
