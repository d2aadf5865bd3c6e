"""`make bench`: run every benchmark and print one table for each.

The numbers are valid only for this machine and this moment. Benchmarks cannot fail.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def benchmarks() -> list[str]:
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def load_main(name: str) -> Callable[[], None]:
    main_function: Callable[[], None] = import_module(f"tests.bench.bench_{name}").main
    return main_function


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(benchmarks())}; default all")
    names = parser.parse_args().names or benchmarks()
    unknown = [name for name in names if name not in benchmarks()]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(benchmarks())}")
    for name in names:
        print(f"\n== {name} ==")
        load_main(name)()


if __name__ == "__main__":
    main()
