"""`python -m tests.ui.large [--data FOLDER] [--requests N] [--serve PORT]`: create a large, realistic installation.

It has 104 providers, 340 model services, 300 task routes, 200 agents, 250 artifacts, 19,000 requests from thirty days,
and the users who created them. No data is sent to other machines, and all keys are invented. A data folder that was
prepared earlier is reused.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.ui.large import PASSWORD, SMALL, Size
from tests.ui.large.configuration import Planned, plan_configuration

ROOT = Path(__file__).resolve().parents[3]
OWN_VARIABLES = ("ROUTING_ADMIN_", "LLM_", "DJANGO", "DATABASE_URL", "REDIS_URL")
STATE_FILE = "large.json"
"""A file in the data folder with the seed and size of the installation, and whether it is complete."""


def build_environment(planned: Planned, folder: Path, port: int) -> dict[str, str]:
    """Return this process's environment, with this installation's variables instead of any other's."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    return {
        **inherited,
        **planned.environment(),
        "DJANGO_SETTINGS_MODULE": "routing_admin.settings",
        "ROUTING_ADMIN_DATA_DIR": str(folder),
        "ROUTING_ADMIN_PORT": str(port),
        "ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD,
    }


def main() -> None:
    options = _parser().parse_args()
    size = replace(SMALL if options.small else Size(), **({"requests": options.requests} if options.requests else {}))
    folder, wanted = options.data.resolve(), {"seed": options.seed, **asdict(size)}
    planned = plan_configuration(size, options.seed)
    environment = build_environment(planned, folder, options.serve or 8000)
    os.environ.clear()
    os.environ.update(environment)
    if _is_prepared(folder, wanted, fresh=options.fresh):
        print(f"{folder} is already prepared and is used as it is (--fresh makes a new one).")
    else:
        (folder / STATE_FILE).write_text(json.dumps({**wanted, "complete": False}))
        _make(planned, folder)
        (folder / STATE_FILE).write_text(json.dumps({**wanted, "complete": True}))
    arguments = " ".join(argument for argument in sys.argv[1:] if argument != "--fresh").partition("--serve")[0].strip()
    print(f"Folder: {folder}\nUser: admin, password: {PASSWORD}")
    if options.serve is None:
        print(f"Serve it: {sys.executable} -m tests.ui.large {arguments or f'--data {folder}'} --serve 8000")
        return
    print(f"http://127.0.0.1:{options.serve}", flush=True)
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "manage.py", "serve"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.large", description=__doc__.partition("\n\n")[2])
    default = Path(tempfile.gettempdir()) / "routing-admin-large"
    parser.add_argument("--data", type=Path, default=default, metavar="FOLDER", help=f"data directory ({default})")
    parser.add_argument("--requests", type=int, metavar="N", help=f"requests in the log ({Size().requests})")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the installation afterwards")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes another installation (1)")
    parser.add_argument("--small", action="store_true", help="the size that the tests of pages use")
    parser.add_argument("--fresh", action="store_true", help="replace a prepared folder")
    return parser


def _is_prepared(folder: Path, wanted: Mapping[str, object], *, fresh: bool) -> bool:
    """Return whether the folder already contains the wanted installation. If not, empty it.

    Exit if the folder contains other files or another installation.
    """
    mark = folder / STATE_FILE
    found = json.loads(mark.read_text()) if mark.exists() else None
    if found == {**wanted, "complete": True} and not fresh:
        return True
    if found is None and folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty and was not made by this command. Name another folder.")
    if found is not None and found.get("complete") and not fresh:
        sys.exit(f"{folder} holds an installation of another size or seed. Add --fresh to replace it.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return False


def _make(planned: Planned, folder: Path) -> None:
    began = time.monotonic()
    # Collect garbage rarely, since each collection visits millions of objects that stay alive.
    gc.set_threshold(100_000, 50, 1000)
    import django

    django.setup()
    from tests.ui.large.calls import send_calls
    from tests.ui.large.making import count_all, make_installation

    make_installation(planned, datetime.now(UTC))
    if planned.size.calls:
        answered = send_calls(folder, planned.seed, planned.size.calls)
        print(f"{planned.size.calls} real calls, {answered} answered")
    for kind, counts in count_all(planned).items():
        print(f"{kind}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"Made in {time.monotonic() - began:.0f} s, {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
