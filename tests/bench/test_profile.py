"""The profile's table of rooms is of files that there are, and a run of it finds most of the time in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.bench.profile import NO_ROOM, ROOMS, room_of
from tests.gateway.serving import ROOT

PARTS = [part for _, parts in ROOMS for part in parts]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_a_room_is_there(part):
    """A file or folder of ours, or a library's: one that was renamed would go to its caller without a word."""
    library = find_spec(part.split("/")[0]) if part.count("/") == 1 and part.endswith("/") else None
    assert (ROOT / part).exists() or library is not None or part == "uvicorn/protocols/"


def test_no_part_stands_in_two_rooms():
    """Otherwise the second would be empty."""
    assert len(set(PARTS)) == len(PARTS)


@pytest.mark.parametrize(
    ("file", "room"),
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
def test_a_file_belongs_to_the_first_room_that_names_it(file, room):
    """What no room names, such as what all of them use, belongs to whoever calls it."""
    assert room_of(f"{ROOT}/{file}") == room


@pytest.mark.skipif(sys.platform != "linux", reason="clocks of threads are read as Linux has them")
def test_a_short_profile_finds_most_of_the_time_in_rooms():
    """Half a second of small calls: every room of such a call has its line, and the loop's own part is the lesser."""
    ours = ("DJANGO", "ROUTING_ADMIN_", "LLM_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    told = subprocess.run(
        [sys.executable, "-m", "tests.bench.profile", "plain"],
        cwd=ROOT,
        env=environment | {"BENCH_SECONDS": "0.5"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    shares = {room.strip(): int(share) for room, share in re.findall(r"^(.+?)\s+[\d.]+\s+(\d+)%$", told, re.M)}
    assert {"server", "way out", "the chain"} <= set(shares)
    assert shares.get(NO_ROOM, 0) < 50
    assert re.search(r"^thread: journal +[\d.]+$", told, re.M)
