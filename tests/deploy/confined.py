"""`python tests/deploy/confined.py UNIT COMMAND…`: run a command under a systemd unit's restrictions without systemd.

The kernel restricts system calls, address families, executable memory, capabilities, umask and core dumps, as it does
for systemd. File system restrictions are not applied.
"""

from __future__ import annotations

import configparser
import ctypes
import os
import resource
import shutil
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

# These are options of prctl(2): PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_MDWE.
NO_NEW_PRIVILEGES, DROP_FROM_BOUNDING_SET, DENY_WRITE_EXECUTE = 38, 24, 65
# These are SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(EPERM), SCMP_CMP_EQ and CAP_CHECKPOINT_RESTORE.
ALLOW, REFUSE, EQUAL, LAST_CAPABILITY = 0x7FFF0000, 0x00050000 | 1, 4, 40


class RepeatedLines(dict[str, Any]):
    """A unit file's section, which collects all lines of a repeated key."""

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and key in self:
            value = [*self[key], *value]
        super().__setitem__(key, value)


class Comparison(ctypes.Structure):
    """libseccomp's struct `scmp_arg_cmp`."""

    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def read_unit(path: Path) -> configparser.SectionProxy:
    unit = configparser.RawConfigParser(strict=False, dict_type=RepeatedLines)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    return unit["Service"]


def missing_requirement() -> str:
    """Return what this machine lacks to apply the restrictions, or an empty string if nothing is missing."""
    if shutil.which("systemd-analyze") is None:
        return "systemd is missing: apt-get install systemd"
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return "libseccomp is missing: apt-get install libseccomp2"
    return ""


def set_process(option: int, value: int = 0) -> int:
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0))


@cache
def calls_in(group: str) -> frozenset[str]:
    if not group.startswith("@"):
        return frozenset({group})
    command = ["systemd-analyze", "syscall-filter", "--no-pager", group]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = (line.strip() for line in lines[1:] if not line.strip().startswith("#"))
    return frozenset().union(*(calls_in(name) for name in names if name))


def allowed_calls(lines: list[str]) -> frozenset[str]:
    allowed: frozenset[str] = frozenset()
    for line in lines:
        calls = frozenset().union(*(calls_in(group) for group in line.removeprefix("~").split()))
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


def filter_calls(names: frozenset[str], families: list[str]) -> None:
    """From now on, reject all system calls except `names`, and sockets of all address families except `families`."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(REFUSE))
    for name in names - {"socket"}:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # A negative number means that this architecture does not have the system call.
            seccomp.seccomp_rule_add_array(context, ALLOW, number, 0, None)
    number = seccomp.seccomp_syscall_resolve_name(b"socket")
    for family in families:
        comparison = Comparison(0, EQUAL, getattr(socket, family), 0)
        seccomp.seccomp_rule_add_array(context, ALLOW, number, 1, ctypes.byref(comparison))
    if seccomp.seccomp_load(context):
        raise OSError("the filter could not be loaded")


def confine(unit: configparser.SectionProxy) -> None:
    os.umask(int(unit["UMask"], 8))
    resource.setrlimit(resource.RLIMIT_CORE, (int(unit["LimitCORE"]),) * 2)
    calls = allowed_calls(unit["SystemCallFilter"].splitlines())
    for number in range(LAST_CAPABILITY + 1):
        set_process(DROP_FROM_BOUNDING_SET, number)
    set_process(NO_NEW_PRIVILEGES, 1)
    set_process(DENY_WRITE_EXECUTE, 1)  # PR_SET_MDWE requires Linux 6.3. Systemd also adds a seccomp filter.
    filter_calls(calls, unit["RestrictAddressFamilies"].split())


if __name__ == "__main__":
    confine(read_unit(Path(sys.argv[1])))
    os.execvp(sys.argv[2], sys.argv[2:])
