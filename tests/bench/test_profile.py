"""The program parts in the profile match existing files, and a profiled run attributes most of its time to them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.bench.profile import AREAS, NO_AREA, find_area
from tests.gateway.serving import ROOT

PARTS = [part for _, parts in AREAS for part in parts]


@pytest.mark.parametrize("part", PARTS)
def test_every_path_in_the_profile_areas_exists(part):
    """The time spent in a renamed file would silently count towards its caller's part."""
    library = find_spec(part.split("/")[0]) if part.count("/") == 1 and part.endswith("/") else None
    assert (ROOT / part).exists() or library is not None or part == "uvicorn/protocols/"


def test_no_path_is_in_two_profile_areas():
    """A path that is listed twice would be counted only in the first program part."""
    assert len(set(PARTS)) == len(PARTS)


@pytest.mark.parametrize(
    ("file", "area"),
    [
        ("routing_admin/gateway/application.py", "server"),
        ("routing_admin/dispatch/plan.py", "planning"),
        ("capabilities/core/protocols/openai/requests.py", "preparing"),
        ("capabilities/core/protocols/openai/stream.py", "way back"),
        (".venv/lib/python3.11/site-packages/aiohttp/client.py", "way out"),
        (".venv/lib/python3.11/site-packages/uvicorn/server.py", None),
        ("capabilities/core/json_codec.py", None),
    ],
)
def test_file_belongs_to_the_first_matching_profile_area(file, area):
    """The time spent in a file without a part, such as one that all parts use, counts towards its caller's part."""
    assert find_area(f"{ROOT}/{file}") == area


@pytest.mark.skipif(sys.platform != "linux", reason="clocks of threads are read as Linux has them")
def test_short_profile_attributes_most_of_the_time_to_areas():
    prefixes = ("DJANGO", "ROUTING_ADMIN_", "LLM_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    output = subprocess.run(
        [sys.executable, "-m", "tests.bench.profile", "plain"],
        cwd=ROOT,
        env=environment | {"BENCH_SECONDS": "0.5"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    shares = {area.strip(): int(share) for area, share in re.findall(r"^(.+?)\s+[\d.]+\s+(\d+)%$", output, re.M)}
    assert {"server", "way out", "the chain"} <= set(shares)
    assert shares.get(NO_AREA, 0) < 50
    assert re.search(r"^thread: journal +[\d.]+$", output, re.M)
