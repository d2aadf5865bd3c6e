"""Mutation testing: `python -m tests.mutants` makes small changes to the source code and checks that a test fails.

If no test notices a change (mutant), the change has no effect or a test is missing. One process imports all tests. For
each mutant, it forks a child that replaces the code of functions and runs the tests. If a mutant takes effect during
imports, it is judged in a copy of the files instead.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from tests.bench.table import show
from tests.mutants.choice import AREAS, ROOT, Mutant, choose, group_tests, imports

SEED, COUNT, SECONDS = 1, 100, 60
# Exit codes: that of timeout(1), and those of pytest if all tests passed or none was selected.
HUNG, NOTHING_FAILED = 124, (0, 5)
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?(?:::.+?)?)(?: - .*)?$", re.MULTILINE)
COUNTS = re.compile(r"\d+ (?:passed|failed|skipped|errors?)\b[^\n]*")
PYTEST = ("-m", "pytest", "-p", "tests.mutants.child", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header")
STARTED: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, kw_only=True)
class Verdict:
    mutant: Mutant
    noticed_by: str | None
    """The test that failed, or how the child process ended if it reported none. None if the mutant survived."""
    ran: Sequence[str]
    seconds: float

    def __str__(self) -> str:
        fate = f"caught by {self.noticed_by}" if self.noticed_by else "SURVIVED"
        place = f"{self.mutant.path}:{self.mutant.mutation.line} {self.mutant.mutation.kind}"
        return f"{place}: {fate} ({self.seconds:.0f} s)"


@dataclass(frozen=True)
class Copy:
    """A copy of the tracked files. It contains one mutant at a time."""

    folder: Path

    def judge_all(self, mutants: Sequence[Mutant], seconds: float) -> list[Verdict]:
        """Judge mutants in forks. Those that take effect during imports are then judged one by one in changed files."""
        answers = list(self.answers(mutants, seconds))
        verdicts = []
        for mutant, answer in zip(mutants, answers, strict=True):
            verdicts.append(answer or self.judge(mutant, seconds))
            if answer is None:
                print(verdicts[-1], flush=True)
        return verdicts

    def answers(self, mutants: Sequence[Mutant], seconds: float) -> Iterator[Verdict | None]:
        """Yield the verdict on each mutant, or None if the mutant changes more than the code of functions."""
        plan: list[dict[str, Any]] = [
            {
                "path": mutant.path,
                "groups": group_tests(mutant.path, imports()),
                "edits": [(start, end, new.decode()) for start, end, new in mutant.mutation.edits],
            }
            for mutant in mutants
        ]
        self.folder.with_suffix(".plan").write_text(json.dumps(plan), "utf-8")
        reading, writing = os.pipe()
        words = [f"--mutants={self.folder}.plan", f"--verdicts=/dev/fd/{writing}", f"--seconds={seconds:.0f}"]
        words += sorted({file for entry in plan for group in entry["groups"] for file in group})
        host = self.start(words, writing)
        os.close(writing)
        with os.fdopen(reading) as lines:
            for mutant, line in zip(mutants, lines, strict=True):
                answer = json.loads(line)
                files = f"{answer['ran']} tests of {', '.join(test_folders(group_tests(mutant.path, imports())))}"
                verdict = Verdict(mutant=mutant, noticed_by=answer["by"], ran=[files], seconds=answer["seconds"])
                print(
                    verdict
                    if answer["swapped"]
                    else f"{mutant.path}:{mutant.mutation.line}: differs during imports, judged later",
                    flush=True,
                )
                yield verdict if answer["swapped"] else None
        host.wait()

    def judge(self, mutant: Mutant, seconds: float, unsound: Sequence[str] = ()) -> Verdict:
        """Run the mutant's tests on the changed file until a test fails, all have passed or the time is up."""
        began, ran, left, noticed = time.monotonic(), [], seconds, None
        skipped = [word for test in unsound for word in ("--deselect", test)]
        with self.mutated(mutant):
            for files in group_tests(mutant.path, imports()):
                started = time.monotonic()
                code, output = self.run(["-x", *skipped, *files], left)
                left -= time.monotonic() - started
                ran.append(f"{', '.join(test_folders([files]))}: {(COUNTS.findall(output) or ['none'])[-1]}")
                if code not in NOTHING_FAILED:
                    noticed = (FAILED.findall(output) or [f"exit code {code}: {output.strip()[-200:]}"])[0]
                if noticed or left <= 0:
                    break
        return Verdict(mutant=mutant, noticed_by=noticed, ran=ran, seconds=time.monotonic() - began)

    def failing(self, tests: Sequence[str]) -> list[str]:
        """Return the tests that fail even without a mutant."""
        code, output = self.run(tests, 10 * SECONDS) if tests else (0, "")
        return [] if code in NOTHING_FAILED else FAILED.findall(output)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        path = self.folder / mutant.path
        original = path.read_bytes()
        try:
            _write(path, mutant.mutation.apply(original))
            yield
        finally:
            _write(path, original)

    def run(self, words: Sequence[str], seconds: float) -> tuple[int, str]:
        """Run pytest and return its exit code and output. If it hangs, kill it and the servers that it started."""
        child = self.start([f"--seconds={seconds:.0f}", *words])
        try:
            code = child.wait(seconds + 2 * SECONDS)
        except subprocess.TimeoutExpired:
            code = HUNG
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if code == -signal.SIGKILL:
            raise RuntimeError("pytest was killed")
        return code, self.folder.with_suffix(".output").read_text("utf-8", "replace")

    def start(self, words: Sequence[str], *passed: int) -> subprocess.Popen[bytes]:
        with self.folder.with_suffix(".output").open("wb") as output:
            child = subprocess.Popen(
                [sys.executable, *PYTEST, *words],
                cwd=self.folder,
                env=os.environ | {"TMPDIR": str(self.folder.parent)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=passed,
            )
        STARTED.append(child)
        return child


def test_folders(groups: Sequence[Sequence[str]]) -> list[str]:
    return sorted({path.split("/")[1] for group in groups for path in group})


def _copy_bytecode(source: Path, copy: Path) -> None:
    """Copy the bytecode of an unchanged module, because compiling all modules would take longer than judging most
    mutants.
    """
    compiled = Path(cache_from_source(str(source)))
    if source.suffix == ".py" and compiled.exists():
        target = Path(cache_from_source(str(copy)))
        target.parent.mkdir(exist_ok=True)
        shutil.copy2(compiled, target)


def _write(path: Path, source: bytes) -> None:
    """Write a module and delete its bytecode. Python would use the old bytecode if the module's size and modification
    time were unchanged.
    """
    path.write_bytes(source)
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


@contextmanager
def copies(count: int) -> Iterator[list[Copy]]:
    """Yield `count` copies of the files that git tracks or would track after `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [path for path in listed.stdout.decode().split("\0") if path and (ROOT / path).is_file()]
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        made = [Copy(Path(place) / str(number)) for number in range(count)]
        for copy in made:
            for path in paths:
                (copy.folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, copy.folder / path)
                _copy_bytecode(ROOT / path, copy.folder / path)
            if (ROOT / ".venv").exists() and not (copy.folder / ".venv").exists():
                (copy.folder / ".venv").symlink_to((ROOT / ".venv").resolve())
        yield made


def run(mutants: Sequence[Mutant], jobs: int, seconds: float) -> list[Verdict]:
    """Judge the mutants in parallel.

    If the test that failed for a mutant also fails without it, judge the mutant by its other tests.
    """
    with copies(jobs) as made, ThreadPoolExecutor(jobs) as pool:
        shares = [mutants[at::jobs] for at in range(jobs)]
        lists = pool.map(lambda copy, share: copy.judge_all(share, seconds), made, shares)
        verdicts = [verdict for share in lists for verdict in share]
        unsound = made[0].failing(
            sorted({verdict.noticed_by for verdict in verdicts if "::" in (verdict.noticed_by or "")})
        )
        for test in unsound:
            print(f"{test} fails without a mutant, too")
        return [
            made[0].judge(verdict.mutant, seconds, unsound) if verdict.noticed_by in unsound else verdict
            for verdict in verdicts
        ]


def report(verdicts: Sequence[Verdict]) -> None:
    rows = []
    for area in [*AREAS, "together"]:
        own = [verdict for verdict in verdicts if area in (verdict.mutant.area, "together")]
        caught = sum(verdict.noticed_by is not None for verdict in own)
        rows.append((area, len(own), caught, len(own) - caught, round(sum(verdict.seconds for verdict in own))))
    show("mutants by area", ("area", "mutants", "caught", "survived", "seconds"), [row for row in rows if row[1]])
    for verdict in verdicts:
        if verdict.noticed_by is None:
            source = (ROOT / verdict.mutant.path).read_bytes()
            print(f"\n{verdict.mutant.path}:{verdict.mutant.mutation.line} {verdict.mutant.mutation.kind}")
            print(*changed_lines(source, verdict.mutant.mutation.apply(source)), sep="\n")
            print(*(f"  ran {line}" for line in verdict.ran), sep="\n")


def changed_lines(before: bytes, after: bytes) -> list[str]:
    pairs = zip(before.decode().splitlines(), after.decode().splitlines(), strict=True)
    return [f"  {old.strip()}  →  {new.strip()}" for old, new in pairs if old != new]


def stop(*_: object) -> None:
    """Kill all pytest processes, so that no thread waits for them and the copies are removed."""
    for process in STARTED:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help=f"which mutants are chosen ({SEED})")
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many ({COUNT})")
    parser.add_argument("--only", default="", metavar="PREFIX", help="only in files whose path begins so")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once (1)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for how long each is tested ({SECONDS})")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    report(run(choose(wanted.seed, wanted.count, wanted.only), wanted.jobs, wanted.seconds))


if __name__ == "__main__":
    main()
