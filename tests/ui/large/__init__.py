"""A large, realistic installation for tests and for viewing: `python -m tests.ui.large --help`.

The same seed and time give the same configuration. All data is created by the product's own actions, at points in two
simulated months: users invite one another, import and change the configuration, agents store files, and requests run
along the real chains while providers fail.
"""

from __future__ import annotations

from dataclasses import dataclass

PASSWORD = "a large installation 1"
"""The administrator's password."""
WIDE = "wide" * 30
"""A name of 120 characters without any place for a line break."""
OFFERED = [f"vendor/model-{number}" for number in range(339)] + [f"vendor/{WIDE}"]
"""Number of models in a provider's list of models."""
KEY_NAMES = (WIDE[:60], "spare")
"""Names of the further keys of the provider with a long name; the first of these names has the maximum length."""


def object_name(prefix: str, number: int) -> str:
    """Return a name of 120 characters for the first object of a kind, and a short name for every other."""
    return f"{prefix}{WIDE}"[:120] if number == 0 else f"{prefix}-{number}"


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many objects of each kind the installation contains, including the demo's objects.

    `unable` is the number of routes that cannot answer, `calls` the number of calls through a served instance, and
    `route_files` the number of imported files with routes. If `roll_ups` is false, a served instance has to create the
    roll-ups, as after an upgrade.
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
"""The size for tests of pages, for which each list is longer than one page."""
