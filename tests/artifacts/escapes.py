"""`python escapes.py DATA CONFINED READER < file`: try to escape from the extraction process.

If CONFINED is `yes`, the process first enters the sandbox for the operation READER, but without the audit hook, which
does not restrict native code. Otherwise, it only tries to access files, to show that this succeeds without the sandbox.
DATA is a data directory. Standard output is a JSON object with the result of each attempt: `""` if it succeeded,
otherwise the error's name.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(sys.argv[1])
PARENT = os.getppid()
PARENTS = Path(f"/proc/{PARENT}")
SECRET, DATABASE, OTHER = DATA / "secret_key", DATA / "db.sqlite3", DATA / "other"
LIBC = ctypes.CDLL(None, use_errno=True)
BUFFER = ctypes.create_string_buffer(4096)
LIBC.syscall.restype = ctypes.c_long
INTEL = os.uname().machine == "x86_64"


def library_call(name: str, *arguments: object) -> Callable[[], None]:
    function = getattr(LIBC, name)

    def call() -> None:
        ctypes.set_errno(0)
        if function(*arguments) == -1:
            raise OSError(ctypes.get_errno(), name)

    return call


def system_call(intel: int, arm: int, *arguments: object) -> Callable[[], None]:
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return library_call("syscall", ctypes.c_long(intel if INTEL else arm), *words)


def call_32_bit_getpid() -> Callable[[], None]:
    """Return an attempt to make a system call as a 32-bit program does. A filter for 64-bit calls would miss it."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
    start_of_code = ctypes.c_char.from_buffer(code)  # This reference keeps the memory allocated.
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(start_of_code))

    def call() -> None:
        if (answer := function()) < 0 and start_of_code:
            raise OSError(-answer, "int 0x80")

    return call


def read(path: Path) -> Callable[[], None]:
    def call() -> None:
        with path.open("rb") as file:
            file.read(1)

    return call


def fork() -> None:
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)


def spawn_process() -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def encode_path(path: Path) -> bytes:
    return os.fsencode(path)


READ, WRITE, CREATE = os.O_RDONLY, os.O_RDWR, os.O_CREAT | os.O_WRONLY
HERE = -100  # AT_FDCWD: paths are relative to the working directory.

FILES: dict[str, Callable[[], object]] = {
    "read the secret key": read(SECRET),
    "read the keys": read(DATA / "keys"),
    "read the database": read(DATABASE),
    "read an artifact": read(DATA / "artifacts" / "one"),
    "read a user's file": read(Path("/etc/passwd")),
    "read the parent's environment": read(PARENTS / "environ"),
    "read the parent's command": read(PARENTS / "cmdline"),
    "read the parent's memory": read(PARENTS / "mem"),
    "read the parent's maps": read(PARENTS / "maps"),
    "read the first process's status": read(Path("/proc/1/status")),
    "read its own environment's file": read(Path("/proc/self/environ")),
    "read through the parent's root": read(PARENTS / "root" / "etc" / "passwd"),
    "list the parent's files": lambda: os.listdir(PARENTS / "fd"),
    "list the data": lambda: os.listdir(DATA),
    "list the root": lambda: os.listdir("/"),
    "read beside the program": read(ROOT / "pyproject.toml"),
    "C: open the secret key": library_call("open", encode_path(SECRET), READ),
    "C: fopen the secret key": lambda: pointer_call("fopen", encode_path(SECRET), b"r"),
    "C: openat the parent's environment": library_call("openat", HERE, encode_path(PARENTS / "environ"), READ),
    "C: load a library of the data": lambda: pointer_call("dlopen", encode_path(SECRET), 2),
}
"""Attempts that Landlock prevents."""


def pointer_call(name: str, *arguments: object) -> None:
    function = POINTERS[name]
    ctypes.set_errno(0)
    if not function(*arguments):
        # dlopen's error number is not reliable, because dlopen also opens files that are not libraries.
        message = (POINTERS["dlerror"]() or b"").decode() if name == "dlopen" else ""
        raise OSError(errno.EACCES if "denied" in message else ctypes.get_errno(), name)


POINTERS = {name: getattr(LIBC, name) for name in ("fopen", "dlopen", "dlerror")}
POINTERS["fopen"].restype = POINTERS["dlopen"].restype = ctypes.c_void_p
POINTERS["dlerror"].restype = ctypes.c_char_p

CALLS: dict[str, Callable[[], object]] = {
    "write a new file": lambda: (DATA / "new").write_bytes(b"x"),
    "write over a file": lambda: OTHER.open("r+b"),
    "append to a file": lambda: OTHER.open("ab"),
    "empty a file": lambda: os.truncate(OTHER, 0),
    "write its own input": lambda: os.open("/proc/self/fd/0", os.O_WRONLY),
    "change its own input's mode": lambda: os.fchmod(0, 0o777),
    "write beside the program": lambda: tempfile.mkstemp(dir=ROOT),
    "write a temporary file": lambda: tempfile.mkstemp(dir="/tmp"),
    "delete a file": lambda: os.unlink(DATA / "deleted"),
    "rename a file": lambda: os.rename(DATA / "renamed", DATA / "renamed2"),
    "make a folder": lambda: os.mkdir(DATA / "folder"),
    "remove a folder": lambda: os.rmdir(DATA / "empty"),
    "link to a file": lambda: os.link(SECRET, DATA / "link"),
    "link to a name": lambda: os.symlink(SECRET, DATA / "symlink"),
    "change a file's mode": lambda: os.chmod(OTHER, 0o777),
    "change a file's owner": lambda: os.chown(OTHER, os.getuid(), os.getgid()),
    "change a file's time": lambda: os.utime(OTHER, (0, 0)),
    "make a queue of bytes": lambda: os.mkfifo(DATA / "fifo"),
    "make memory as a file": lambda: os.memfd_create("x"),
    "fork": fork,
    "start a program": spawn_process,
    "start a shell": lambda: subprocess.run(["/bin/true"], check=True),
    "look whether the parent can be signalled": lambda: os.kill(PARENT, 0),
    "signal its group": lambda: os.kill(0, 0),
    "signal everything": lambda: os.kill(-1, 0),
    "get a handle of the parent": lambda: os.pidfd_open(PARENT),
    "have the parent signalled": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, PARENT),
    "lock its input": lambda: fcntl.flock(0, fcntl.LOCK_SH),
    "limit the parent": lambda: resource.prlimit(PARENT, resource.RLIMIT_CORE),
    "slow the parent down": lambda: os.setpriority(os.PRIO_PROCESS, PARENT, os.getpriority(os.PRIO_PROCESS, PARENT)),
    "move the parent to a core": lambda: os.sched_setaffinity(PARENT, os.sched_getaffinity(PARENT)),
    "connect over IPv4": lambda: socket.socket(),
    "connect over IPv6": lambda: socket.socket(socket.AF_INET6),
    "connect within the machine": lambda: socket.socket(socket.AF_UNIX),
    "send datagrams": lambda: socket.socket(type=socket.SOCK_DGRAM),
    "make two sockets": lambda: socket.socketpair(),
    "ask the kernel about the network": lambda: socket.socket(socket.AF_NETLINK),
    "make a pipe": lambda: os.pipe(),
    "leave the folder": lambda: os.chdir("/"),
    "unmask files": lambda: os.umask(0),
    "rename the machine": lambda: socket.sethostname(socket.gethostname()),
    "block signals' timer": lambda: signal.setitimer(signal.ITIMER_REAL, 0),
    "C: open a file for writing": library_call("open", encode_path(OTHER), WRITE),
    "C: make a file": library_call("creat", encode_path(DATA / "created"), 0o600),
    "C: open by openat2": system_call(437, 437, HERE, encode_path(SECRET), bytes(24), 24),
    "C: truncate": library_call("truncate", encode_path(OTHER), 0),
    "C: fork": system_call(56, 220, signal.SIGCHLD, 0, 0, 0, 0),
    "C: clone3": system_call(435, 435, bytes(64), 64),
    "C: execute": system_call(59, 221, b"/bin/nothing", None, None),
    "C: execute a descriptor": system_call(322, 281, 0, b"", None, None, 0x1000),
    "C: signal the parent": library_call("kill", PARENT, 0),
    "C: signal the parent's thread": system_call(234, 131, PARENT, PARENT, 0),
    "C: queue a signal": system_call(129, 138, PARENT, signal.SIGWINCH, BUFFER),
    "C: trace the parent": library_call("ptrace", 0x4206, PARENT, None, None),
    "C: read the parent's memory": system_call(310, 270, PARENT, BUFFER, 1, BUFFER, 1, 0),
    "C: take the parent's descriptor": system_call(438, 438, 0, 0, 0),
    "C: socket": library_call("socket", socket.AF_INET, socket.SOCK_STREAM, 0),
    "C: io_uring": system_call(425, 425, 1, BUFFER),
    "C: mount": library_call("mount", b"none", b"/mnt", b"tmpfs", 0, None),
    "C: unmount": library_call("umount2", b"/mnt", 0),
    "C: another root": library_call("chroot", encode_path(DATA)),
    "C: namespaces": library_call("unshare", 0x10000000),
    "C: another's namespace": library_call("setns", 0, 0),
    "C: keys of the kernel": system_call(250, 219, 0, -3, 0, 0, 0),
    "C: programs in the kernel": system_call(321, 280, 5, BUFFER, 48),
    "C: events of the processor": system_call(298, 241, BUFFER, 0, -1, -1, 0),
    "C: faults of memory": system_call(323, 282, 1),
    "C: shared memory": library_call("shmget", 0, 4096, 0o1600),
    "C: messages": library_call("msgget", 0, 0o1600),
    "C: handle of a file": system_call(303, 264, HERE, encode_path(SECRET), BUFFER, BUFFER, 0),
    "C: watch files": library_call("inotify_init1", 0),
    "C: watch everything": system_call(300, 262, 0, 0),
    "C: send a file": library_call("sendfile", 1, 0, None, 1),
    "C: personality": library_call("personality", 0xFFFFFFFF),
    "C: become another": library_call("setuid", os.getuid()),
    "C: make the parent's death known": library_call("prctl", 1, signal.SIGWINCH, 0, 0, 0),
    "C: another filter": library_call("prctl", 22, 1, 0, 0, 0),
    "C: input of the terminal": library_call("ioctl", 0, 0x5412, b"x"),
    "C: attributes of a file": library_call("setxattr", encode_path(OTHER), b"user.x", b"x", 1, 0),
    "C: a module of the kernel": system_call(313, 273, 0, b"", 0),
    "C: swap": system_call(167, 224, encode_path(OTHER), 0),
    "C: the clock": system_call(159, 171, None),
}
"""Attempts that the system call filter prevents."""

if INTEL:
    CALLS["C: calls of 32 bits"] = call_32_bit_getpid()
    CALLS["C: calls of x32"] = system_call(0x40000000 | 39, 0)


def attempt(call: Callable[[], object]) -> str:
    try:
        call()
    except OSError as refusal:
        return errno.errorcode.get(refusal.errno or 0, str(refusal))
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def main() -> None:
    sandbox: dict[str, object] = {}
    if sys.argv[2] == "yes":
        sys.path.insert(0, str(ROOT))
        from artifacts.extract.__main__ import load
        from artifacts.extract.confine import limit
        from artifacts.extract.sandbox import apply_sandbox

        limit()
        load(sys.argv[3], {"reader": "pdf"})
        sandbox = apply_sandbox()
    attempts = {**FILES, **CALLS} if sandbox else FILES
    results = {name: attempt(call) for name, call in attempts.items()}
    print(json.dumps({"sandbox": sandbox, "files": [*FILES], "results": results}))


if __name__ == "__main__":
    main()
