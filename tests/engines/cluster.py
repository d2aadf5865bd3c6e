"""A temporary PostgreSQL server for tests. It uses the installed programs, a free port and no fsync.

`python -m tests.engines.cluster` starts one, prints its database URL and runs until Ctrl-C.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.engines.programs import find_program
from tests.processes import free_port

INSTALL = "PostgreSQL 15 or newer is not installed (Debian: apt-get install postgresql)"
FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql@*/bin")
USER = "tests"
PASSWORD = "a test's own"
OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "password_encryption": "scram-sha-256",
    # The time zone differs from the product's, so that no code relies on the server's time zone.
    "timezone": "Asia/Shanghai",
}

RUNUSER = find_program("runuser") or "runuser"

CARELESS = ("fsync", "synchronous_commit", "full_page_writes")
"""PostgreSQL options that protect acknowledged commits from a crash. Servers that are not `lasting` turn them off."""


def find_programs() -> Path | None:
    """Return the folder of the newest `initdb`, or None if there is none."""
    initdb = find_program("initdb")
    folders = [path for folder in FOLDERS for path in Path("/").glob(folder.lstrip("/")) if (path / "initdb").exists()]
    return max(folders, key=_version, default=Path(initdb).parent if initdb else None)


def _version(programs: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(programs))]


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL cluster that listens on 127.0.0.1 and on a socket in its folder."""

    programs: Path
    folder: Path
    port: int
    lasting: bool = False

    def url(self, name: str) -> str:
        return f"postgres://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        settings = {name: value for name, value in OPTIONS.items() if not (self.lasting and name in CARELESS)}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        arguments = ["-w", "-t", "60", "-l", str(self.folder / "log"), "-D", str(self.folder / "data")]
        self._run("pg_ctl", *arguments, "-o", f"{options} -p {self.port} -k {self.folder}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server in the given mode of `pg_ctl`. `immediate` aborts it, as a power failure would."""
        self._run("pg_ctl", "-w", "-m", mode, "-D", str(self.folder / "data"), "stop")

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def make_database(self, name: str, template: str = "") -> str:
        self.ask("postgres", f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self.ask("postgres", f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
        return self.url(name)

    def ask(self, database: str, sql: str) -> str:
        arguments = ["-h", str(self.folder), "-p", str(self.port), "-U", USER, "-d", database, "-Atqc", sql]
        return self._run("psql", *arguments).strip()

    def create(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
            shutil.chown(secret, "postgres")
        arguments = ["-D", str(self.folder / "data"), "-U", USER, "--pwfile", str(secret), "-E", "UTF8"]
        self._run(
            "initdb", *arguments, "--locale=C.UTF-8", "--auth-host=scram-sha-256", "--auth-local=trust", "--no-sync"
        )

    def _signal(self, number: int) -> None:
        main = int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(main)], capture_output=True, text=True, check=True)
        for process in [main, *map(int, children.stdout.split())]:
            os.kill(process, number)

    def _run(self, program: str, *arguments: str) -> str:
        """Run a program. If this process is root, run it as the user postgres, because PostgreSQL rejects root."""
        as_user: Sequence[str] = (RUNUSER, "-u", "postgres", "--") if os.geteuid() == 0 else ()
        command = [*as_user, str(self.programs / program), *arguments]
        # Write the output to a file, because the started server would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, cwd="/", check=False)
            output.seek(0)
            text = output.read().decode()
        if result.returncode:
            raise RuntimeError(f"{program} failed: {text}")
        return text


@contextmanager
def running_cluster(*, lasting: bool = False) -> Iterator[Cluster]:
    """Yield a running server. If `lasting` is true, it writes commits to disk, like a production server.

    Raise `LookupError` if PostgreSQL is not installed.
    """
    programs = find_programs()
    if programs is None:
        raise LookupError(INSTALL)
    folder = Path(tempfile.mkdtemp(prefix="routing-admin-pg-"))
    cluster = Cluster(programs, folder, free_port(), lasting)
    try:
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    with running_cluster() as server:
        print(server.make_database("routing_admin"), flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
