"""Print the licenses of all packages in this interpreter's environment: `python licenses.py > LICENSES.txt`.

All license files of a package are printed, because many wheels bundle libraries that have their own licenses. If a
wheel contains no license file, the text is read from `missing-licenses/`, which has it from the project's repository.
"""

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

MISSING = Path(__file__).parent / "missing-licenses"
NAMES = ("LICEN", "COPYING", "NOTICE")
RULE = "=" * 100


def find_licenses(package: importlib.metadata.Distribution) -> Iterator[tuple[str, str]]:
    for file in package.files or ():
        place, _, name = str(file).partition(".dist-info/")
        if "/" not in place and any(word in name.upper() for word in NAMES):
            yield name.removeprefix("licenses/"), decoded(file.read_binary())
    if (text := MISSING / f"{package.name}.txt").exists():
        yield text.name, text.read_text("utf-8")


def decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def license_name(package: importlib.metadata.Distribution) -> str:
    """Return the package's SPDX license expression, or the license in its older metadata fields if it has none."""
    metadata = package.metadata
    classifiers = [line.rsplit(" :: ", 1)[1] for line in metadata.get_all("Classifier", []) if "License ::" in line]
    return metadata.get("License-Expression") or " or ".join(classifiers) or metadata["License"].splitlines()[0]


def main() -> int:
    unlicensed = list[str]()
    for package in sorted(importlib.metadata.distributions(), key=lambda package: package.name.lower()):
        texts = list(find_licenses(package))
        if not texts:
            unlicensed.append(package.name)
        print(RULE, package.name, package.version, license_name(package), RULE, sep="\n")
        for name, text in texts:
            print(f"--- {name}", text.strip(), "", sep="\n\n")
    if unlicensed:
        print(f"No license text: {', '.join(unlicensed)}. Put it into {MISSING}.", file=sys.stderr)
    return bool(unlicensed)


if __name__ == "__main__":
    sys.exit(main())
