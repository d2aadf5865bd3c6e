"""Restrict this process to its input, its output and the code that parses files, by means of the Linux kernel.

Audit hooks apply only to Python code, so only the kernel can restrict the native code of a parser. Landlock hides all
files except code. A seccomp filter allows only system calls for reading, computing and threads. Child processes inherit
both, neither can be removed, and both apply before any input is read. Protections that a kernel lacks are skipped and
reported, because files must be readable on such systems, too.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

if sys.platform == "linux":
    import ctypes

READ_FILE, READ_DIR = 1 << 2, 1 << 3
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
NETWORK_RIGHTS = {4: 0b11}
SCOPES = {6: 0b11}
"""Maps Landlock versions to bit masks of what they can forbid: file access, TCP, and signals and sockets of other
processes."""

SYSTEM_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store", "/etc/ld.so.cache")
"""Locations of shared libraries that an extension module may load late."""

FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/X11/fonts")
"""Folders where PDFium looks for fonts that a document names but does not embed."""


def apply_sandbox() -> dict[str, object]:
    """Apply the sandbox to this process.

    Return `landlock` (its version, or 0) and `seccomp` (whether system calls are filtered). Modules outside Python's
    own folders must be imported before this call.
    """
    if sys.platform != "linux":
        return {"landlock": 0, "seccomp": False}
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, *_longs(1, 0, 0, 0)):
        return {"landlock": 0, "seccomp": False}
    return {"landlock": _hide_files(libc), "seccomp": _filter_calls(libc)}


def code_folders() -> list[str]:
    """Return the folders of Python, installed packages and imported packages, but not the whole project."""
    standard = os.path.dirname(os.__file__)
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [standard, os.path.join(sys.base_prefix, "lib"), own]
    folders += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    for name, module in list(sys.modules.items()):
        if "." not in name and not str(getattr(module, "__file__", None) or standard).startswith(tuple(folders)):
            folders += getattr(module, "__path__", [])
    return folders


# Constants of Landlock (include/uapi/linux/landlock.h). Its system call numbers are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1


def _hide_files(libc: Any) -> int:
    version = libc.syscall(*_longs(_CREATE_RULESET, 0, 0, _VERSION_FLAG))
    if version < 1:
        return 0
    rights = [_newest(table, version) for table in (FILE_RIGHTS, NETWORK_RIGHTS, SCOPES)]
    attributes = struct.pack("=QQQ", *rights)
    ruleset = libc.syscall(*_longs(_CREATE_RULESET), attributes, *_longs(len(attributes), 0))
    if ruleset < 0:
        return 0
    for path in (*code_folders(), *SYSTEM_FOLDERS, *FONT_FOLDERS):
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = READ_FILE | (READ_DIR if os.path.isdir(path) else 0)
        libc.syscall(*_longs(_ADD_RULE, ruleset, _PATH_BENEATH), struct.pack("=Qi", allowed, folder), *_longs(0))
        os.close(folder)
    restricted = libc.syscall(*_longs(_RESTRICT_SELF, ruleset, 0)) == 0
    os.close(ruleset)
    return int(version) if restricted else 0


def _newest(table: dict[int, int], version: int) -> int:
    return max((bits for since, bits in table.items() if since <= version), default=0)


def _longs(*values: int) -> Iterator[Any]:
    # Without a declared type, ctypes passes an int as 32 bits and leaves the other bits of the register undefined.
    return map(ctypes.c_long, values)


# Constants of seccomp (include/uapi/linux/seccomp.h, filter.h and audit.h).
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER_MODE = 22, 38, 2
_LOAD, _AND, _IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Maps each machine architecture to its column in the tables of system calls and its number in a seccomp filter."""

Numbers = tuple[int, int | None]

# Each of these system calls can only read open files, compute, wait, or query this process. The numbers are those for
# x86_64 and aarch64.
CALLS: dict[str, Numbers] = {
    "read": (0, 63),
    "pread64": (17, 67),
    "readv": (19, 65),
    "write": (1, 64),
    "writev": (20, 66),
    "lseek": (8, 62),
    "close": (3, 57),
    "dup": (32, 23),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "stat": (4, None),
    "lstat": (6, None),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    "mincore": (27, 232),
    "brk": (12, 214),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getrandom": (318, 278),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "getpriority": (140, 141),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "arch_prctl": (158, None),
    "exit": (60, 93),
    "exit_group": (231, 94),
}


class Check(NamedTuple):
    """A condition on a system call: the bits of `mask` in an argument must be one of `values`."""

    argument: int
    values: Collection[int]
    mask: int = 0xFFFFFFFF


_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CLONE_THREAD, _NAMESPACES = 0x00010000, 0x7E020000
_SET_NAME, _IS_TERMINAL = 15, 0x5401
_DUPLICATE, _DUPLICATE_CLOEXEC, _GET_FLAGS, _SET_FLAGS, _GET_STATUS = 0, 1030, 1, 2, 3


def checked_calls(process: int) -> dict[str, tuple[Numbers, list[Check]]]:
    """Return the system calls that the process with this id may make only with certain arguments."""
    # Other arguments could open a file for writing, fork, or send a signal to the parent process (F_SETOWN, tgkill).
    return {
        "openat": ((257, 56), [Check(2, (0,), _CHANGES)]),
        "open": ((2, None), [Check(1, (0,), _CHANGES)]),
        "clone": ((56, 220), [Check(0, (_CLONE_THREAD,), _CLONE_THREAD | _NAMESPACES)]),
        "tgkill": ((234, 131), [Check(0, (process,))]),
        "prlimit64": ((302, 261), [Check(0, (0, process))]),
        "setpriority": ((141, 140), [Check(0, (0,)), Check(1, (0, process))]),
        "prctl": ((157, 167), [Check(0, (_SET_NAME,))]),
        "ioctl": ((16, 29), [Check(1, (_IS_TERMINAL,))]),
        "fcntl": ((72, 25), [Check(1, (_DUPLICATE, _DUPLICATE_CLOEXEC, _GET_FLAGS, _SET_FLAGS, _GET_STATUS))]),
    }


def _filter_calls(libc: Any) -> bool:
    column, architecture = ARCHITECTURES.get(os.uname().machine, (0, 0))
    if not architecture or struct.calcsize("P") != 8:
        return False
    program = b"".join(call_filter(column, architecture, os.getpid()))
    instructions = ctypes.create_string_buffer(program, len(program))
    # The C type is `struct sock_fprog`.
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    return bool(libc.prctl(_PR_SET_SECCOMP, *_longs(_FILTER_MODE), header, *_longs(0, 0)) == 0)


def call_filter(column: int, architecture: int, process: int) -> Iterator[bytes]:
    """Yield the BPF program that allows only the system calls in `CALLS` and `checked_calls`."""
    # Report any other system call as unknown, as an older kernel would, so that libraries fall back to an allowed one
    # (from clone3 to clone).
    unknown, refused, allowed = (_step(_RETURN, value) for value in (_REFUSE | _ENOSYS, _REFUSE | _EPERM, _ALLOW))
    yield _step(_LOAD, _ARCHITECTURE) + _step(_IF_EQUAL, architecture, 1, 0) + refused + _step(_LOAD, _NUMBER)
    for call in CALLS.values():
        if (number := call[column]) is not None:
            yield _step(_IF_EQUAL, number, 0, 1) + allowed
    for numbers, checks in checked_calls(process).values():
        if (number := numbers[column]) is not None:
            steps = b"".join(_check(check, refused) for check in checks) + allowed
            yield _step(_IF_EQUAL, number, 0, len(steps) // 8) + steps
    yield unknown


def _check(check: Check, refused: bytes) -> bytes:
    # The upper half of an argument is not compared, because these system calls do not use it.
    steps = _step(_LOAD, _ARGUMENTS + 8 * check.argument) + _step(_AND, check.mask)
    for left in range(len(check.values), 0, -1):
        steps += _step(_IF_EQUAL, list(check.values)[-left], left, 0)
    return steps + refused


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    # The C type is `struct sock_filter`.
    return struct.pack("=HBBI", code, if_true, if_false, value)
