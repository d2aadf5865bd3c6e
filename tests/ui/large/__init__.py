"""A large, believable installation, for looking at and for tests: `python -m tests.ui.large --help`.

The same seed and the same moment make the same configuration. Everything goes through the product's own actions, at the
times of two simulated months: people invite one another, import and change the configuration, agents store files, and
requests run along the real chains while providers fail.
"""

from __future__ import annotations

from dataclasses import dataclass

PASSWORD = "a large installation 1"
"""The administrator's password."""
WIDE = "wide" * 30
"""A name of 120 characters that can only break at the width of the page."""
OFFERED = [f"vendor/model-{number}" for number in range(339)] + [f"vendor/{WIDE}"]
"""Models that a host lists."""
KEY_NAMES = (WIDE[:60], "spare")
"""Names of the wide provider's further keys; the first has the maximum length."""


def name_of(prefix: str, number: int) -> str:
    """Return the wide name for the first object of a kind, and a short name for every other."""
    return f"{prefix}{WIDE}"[:120] if number == 0 else f"{prefix}-{number}"


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much there is in total, the demo's objects included.

    `calls` are sent to a served instance. `route_files` is how many files with routes are imported. Without `roll_ups`,
    a served instance still has to make them, as after an upgrade.
    """

    providers: int = 104
    services: int = 340
    routes: int = 300
    unable: int = 33
    aliases: int = 120
    agents: int = 200
    revisions: int = 60
    artifacts: int = 250
    requests: int = 19_000
    calls: int = 100
    route_files: int = 2
    roll_ups: bool = True


SMALL = Size(
    providers=34,
    services=104,
    routes=46,
    unable=9,
    aliases=60,
    agents=45,
    revisions=20,
    artifacts=56,
    requests=400,
    calls=0,
    route_files=1,
    roll_ups=False,
)
"""For tests of pages: a list of each kind is longer than one page shows at once."""
