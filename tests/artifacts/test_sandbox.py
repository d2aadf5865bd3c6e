"""The extraction process runs in a sandbox: whatever code runs there can read its input and nothing else."""

from __future__ import annotations

import errno
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from samples import draw_picture, pdf

from artifacts.extract.process import ROOT, run
from artifacts.extract.sandbox import ARCHITECTURES, CALLS, call_filter, checked_calls

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such sandbox")

REFUSED = {"EPERM", "EACCES", "ENOSYS"}
PROCESS = 4711
ALLOWED, DENIED, UNKNOWN = "allowed", "EPERM", "ENOSYS"


def try_to_escape(data: Path, *arguments: str) -> dict[str, dict[str, str]]:
    program = Path(__file__).with_name("escapes.py")
    with (data / "artifacts" / "one").open("rb") as source:
        command = [sys.executable, "-s", "-E", "-B", str(program), str(data), *arguments]
        output = subprocess.run(command, stdin=source, stdout=subprocess.PIPE, check=True, timeout=60, cwd=ROOT).stdout
    answer: dict[str, dict[str, str]] = json.loads(output)
    return answer


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in ("artifacts", "empty"):
        (tmp_path / folder).mkdir()
    for name in ("secret_key", "keys", "db.sqlite3", "other", "deleted", "renamed", "artifacts/one"):
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize("operation", ["text", "image", "facts", "pages"])
def test_every_escape_attempt_from_the_sandbox_fails(data: Path, operation: str) -> None:
    """The test makes about a hundred attempts to escape, from Python and C, in the sandbox of each operation."""
    answer = try_to_escape(data, "yes", operation)
    sandbox, results = answer["sandbox"], answer["results"]
    hidden = [] if sandbox["landlock"] else answer["files"]
    assert sandbox["seccomp"]
    assert len(results) > 100
    assert {name: result for name, result in results.items() if result not in REFUSED and name not in hidden} == {}
    assert {path.name for path in data.rglob("*") if path.is_file()} == {
        *("secret_key", "keys", "db.sqlite3", "other", "deleted", "renamed", "one")
    }
    assert {path.read_text() for path in data.rglob("*") if path.is_file()} == {"x"}


def test_escape_attempts_without_the_sandbox_can_read_files(data: Path) -> None:
    """The same attempts succeed without the sandbox, so it must be the sandbox that prevents them."""
    results = try_to_escape(data, "no", "text")["results"]
    names = ("read the secret key", "read the database", "C: open the secret key", "read the parent's environment")
    assert {name: results[name] for name in names} == dict.fromkeys(names, "")


def test_every_result_names_the_active_sandbox_features(write_file) -> None:
    sandbox = run(write_file(pdf("x")), "facts", {"mime_type": "application/pdf"}, max_output=4096).header["sandbox"]
    assert sandbox == {"landlock": sandbox["landlock"], "seccomp": True}


LACKING = """
import io, sys; sys.path.insert(0, {root!r})
from artifacts.extract import __main__ as reader, sandbox
{change}
closed = reader.enter_sandbox("image", {{}}, 0)
options = '{{"mime_types": ["image/png"], "max_bytes": 9999, "max_side": 9}}'

reader.main(["image", options], sys.stdin.buffer, out := io.BytesIO(), closed)
print(out.getvalue().split(b"\\n")[0].decode())
"""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("sandbox._CREATE_RULESET = 9999", {"landlock": 0, "seccomp": True}),
        ("sandbox.ARCHITECTURES = {}", {"seccomp": False}),
        ("sandbox._PR_SET_NO_NEW_PRIVS = 9999", {"landlock": 0, "seccomp": False}),
    ],
    ids=["no Landlock", "an unknown processor", "no new privileges cannot be forbidden"],
)
def test_file_is_read_on_a_kernel_without_a_sandbox_feature(
    write_file, change: str, expected: dict[str, object]
) -> None:
    """Sandbox features that the kernel lacks are not used, and this is reported."""
    code = LACKING.format(root=str(ROOT), change=change)
    with write_file(draw_picture("PNG", (20, 20))).open("rb") as source:
        output = subprocess.run([sys.executable, "-c", code], stdin=source, capture_output=True, check=True).stdout
    header = json.loads(output)
    assert (header["width"], header["sandbox"] | expected) == (9, header["sandbox"])


def decide(machine: str, name: str, *arguments: int, architecture: int | None = None) -> str:
    """Return the system call filter's decision for a call, as the kernel would evaluate it."""
    column, own = ARCHITECTURES[machine]
    program = b"".join(call_filter(column, own, PROCESS))
    number = NUMBERS[machine].get(name, 9999)
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, own if architecture is None else architecture, 0, *words)
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x06:
                return ALLOWED if value == 0x7FFF0000 else errno.errorcode[value & 0xFFFF]


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
OWN = {name: numbers for name, (numbers, _) in checked_calls(PROCESS).items()} | CALLS
NUMBERS = {
    machine: {name: numbers[column] for name, numbers in OWN.items() if numbers[column] is not None}
    | {"socket": (41, 198)[column], "execve": (59, 221)[column], "kill": (62, 129)[column], "clone3": 435}
    for machine, (column, _) in ARCHITECTURES.items()
}


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "arguments", "decision"),
    [
        ("read", (0, 0, 10), ALLOWED),
        ("exit_group", (), ALLOWED),
        ("openat", (0, 0, os.O_RDONLY), ALLOWED),
        ("openat", (0, 0, os.O_RDWR), DENIED),
        ("openat", (0, 0, os.O_CREAT), DENIED),
        ("openat", (0, 0, os.O_TRUNC), DENIED),
        ("clone", (0x3D0F00,), ALLOWED),  # pthread_create makes this system call.
        ("clone", (17,), DENIED),
        ("clone", (0x3D0F00 | 0x10000000,), DENIED),
        ("tgkill", (PROCESS, 1, 6), ALLOWED),
        ("tgkill", (1, 1, 9), DENIED),
        ("setpriority", (0, 0, 5), ALLOWED),
        ("setpriority", (0, 1, 5), DENIED),
        ("setpriority", (2, 0, 5), DENIED),
        ("prlimit64", (0,), ALLOWED),
        ("prlimit64", (1,), DENIED),
        ("fcntl", (0, 3), ALLOWED),
        ("fcntl", (0, 8), DENIED),
        ("prctl", (15,), ALLOWED),
        ("prctl", (22,), DENIED),
        ("clone3", (), UNKNOWN),
        ("socket", (), UNKNOWN),
        ("execve", (), UNKNOWN),
        ("kill", (1, 9), UNKNOWN),
    ],
)
def test_seccomp_filter_allows_system_calls_only_with_permitted_arguments(
    machine: str, name: str, arguments: tuple[int, ...], decision: str
) -> None:
    assert decide(machine, name, *arguments) == decision
    assert decide(machine, name, *arguments, architecture=0x40000003) == DENIED


@pytest.mark.parametrize(("machine", "header"), HEADERS.items())
def test_system_call_numbers_match_the_kernel_headers(machine: str, header: Path) -> None:
    if not header.exists():
        pytest.skip(f"the kernel's headers are missing: {header}")
    lines = re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", header.read_text())
    numbers = {name: int(number) for name, number in lines}
    numbers.setdefault("newfstatat", numbers.get("fstatat", 0))
    column, _ = ARCHITECTURES[machine]
    own = {name: pair[column] for name, pair in OWN.items() if pair[column] is not None}
    assert own == {name: numbers.get(name) for name in own}
