"""`make chaos`: stress a served installation in every way that could lose data. Exit with 1 if anything is lost."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable

from tests.bench.table import show
from tests.chaos.callers import Finding, finding
from tests.chaos.drains import drain
from tests.chaos.engines import push_engines
from tests.chaos.hostile import attack
from tests.chaos.kills import kill_again_and_again
from tests.chaos.locks import lock_and_release
from tests.chaos.machines import push_machines
from tests.chaos.races import race
from tests.chaos.slow import hold_open

SCENARIOS: dict[str, tuple[Callable[[int], Finding], int, str]] = {
    "kills": (kill_again_and_again, 60, "kill -9 so often"),
    "pairs": (race, 1000, "so many racing pairs of edits"),
    "locks": (lock_and_release, 10, "lock a database so often"),
    "slow": (hold_open, 1000, "hold so many slow connections open"),
    "drains": (drain, 5, "end the server under load so often"),
    "hostile": (attack, 1, "make every attack of hostile clients and providers so often"),
    "machines": (push_machines, 2, "stop and start PostgreSQL, Redis and S3 under three processes so often"),
    "engines": (push_engines, 1, "play every fault of PostgreSQL, Redis, S3 and our processes so often"),
}
"""Each scenario's function, its default number of repetitions, and its option's help text."""
MAX_PRINTED = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    for name, (_, usual, meaning) in SCENARIOS.items():
        parser.add_argument(
            f"--{name}", type=int, default=usual, metavar="N", help=f"{meaning} ({usual}; 0: not at all)"
        )
    parser.add_argument("scenarios", nargs="*", help=f"only these: {', '.join(SCENARIOS)} (all)")
    amounts = vars(parser.parse_args())
    if unknown := set(amounts["scenarios"]) - set(SCENARIOS):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}")
    findings, durations = [], []
    for name, (run, _, _) in SCENARIOS.items():
        if amounts[name] and (name in amounts["scenarios"] or not amounts["scenarios"]):
            started = time.monotonic()
            findings.append(_run_scenario(name, run, amounts[name]))
            durations.append(time.monotonic() - started)
            print(f"{name}: {findings[-1].facts}; lost: {len(findings[-1].losses)}", flush=True)
            print(*findings[-1].losses[:MAX_PRINTED], sep="\n", end="\n" if findings[-1].losses else "", flush=True)
    rows = [
        (result.scenario, result.tries, f"{seconds:.0f} s", len(result.losses))
        for result, seconds in zip(findings, durations, strict=True)
    ]
    show("what was tried, and lost", ("scenario", "tried", "took", "lost"), rows)
    lost = {result.scenario: len(result.losses) for result in findings if result.losses}
    summary = ", ".join(f"{count} of {scenario}" for scenario, count in lost.items())
    print(f"\nverdict: {f'LOST: {summary}' if lost else 'nothing was lost'}")
    return bool(lost)


def _run_scenario(name: str, run: Callable[[int], Finding], times: int) -> Finding:
    try:
        return run(times)
    except Exception as error:
        traceback.print_exc()
        return finding(name, str(times), "broken", [f"{name} broke: {error!r}"])


if __name__ == "__main__":
    sys.exit(main())
