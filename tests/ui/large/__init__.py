"""A large, realistic installation, to test pages or to look at: `python -m tests.ui.large --help`.

The same seed and time always give the same configuration. All data is created by the product's own functions, at times
spread over two simulated months: users invite others, import and change the configuration, agents store files, and
requests run along fallback chains while providers fail.
"""

from __future__ import annotations

from dataclasses import dataclass

PASSWORD = "a large installation 1"
WIDE = "wide" * 30
"""A name of 120 characters that offers no place for a line break."""
OFFERED = [f"vendor/model-{number}" for number in range(339)] + [f"vendor/{WIDE}"]
"""Names of the 340 models that a provider lists."""
KEY_NAMES = (WIDE[:60], "spare")
"""Names of the additional keys that belong to the provider with the long name. The first has the maximum length."""


def object_name(prefix: str, number: int) -> str:
    """Return a name of 120 characters for the first object of a kind, and a short name for any other."""
    return f"{prefix}{WIDE}"[:120] if number == 0 else f"{prefix}-{number}"


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many objects of each kind the installation has, including those of the demo.

    `unable` counts the routes that cannot answer, `calls` the real calls through a running server, and `route_files`
    the imported files with routes. If `roll_ups` is false, the server has to create the usage roll-ups, as after an
    upgrade.
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
"""The size for page tests: every list is longer than one page."""
