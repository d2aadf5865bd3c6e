"""docs/faults.md, written from the table itself: `python -m routing_admin.core.fallback.document > docs/faults.md`."""

from __future__ import annotations

import sys

from capabilities.core.wire import Fault
from routing_admin.core.fallback.policy import DEFAULT_RETRIES, GROUPS
from routing_admin.core.fallback.table import (
    AFTER_CONTENT,
    COOLS_WHEN_PASSED_ON,
    KEY_EFFECTS,
    OWN_STATUS,
    RESILIENT_NEXT,
    TABLE,
    Action,
    Effect,
    FaultRow,
    Scope,
)

OPENING = f"""# Faults: what can come back instead of an answer, and the one outcome each has

Written from `routing_admin/core/fallback/table.py`: `python -m routing_admin.core.fallback.document > docs/faults.md`.

A route's preset decides (`seed` is the default), and its `onError` decides otherwise, by a fault's code, a status such
as `404`, or a group: {", ".join(f"`{group}`" for group in GROUPS)}.

- **retry**: the same candidate again, at most {DEFAULT_RETRIES} times by default, then the next one
- **next**: the next candidate at once
- **raise**: an error at once, with every attempt so far
- `strict` retries every 429 and 5xx; `resilient` lets a provider's own refusals go on, marked red

What the agent sees is the status and code when this fault is raised, or when every candidate ended so. A chain that is
exhausted answers `all_providers_failed` with 429 if every attempt was a 429, 504 if every one timed out, else 502.

| fault | class | seed | resilient | strict | cooldown | what the agent sees | alert |
|---|---|---|---|---|---|---|---|
"""

COOLDOWNS = {
    Effect.NONE: "–",
    Effect.COUNT: "after 3 in a row",
    Effect.NOW: "at once",
    Effect.MINUTE: "1 minute",
    Effect.LONG: "10 minutes",
    Effect.EXACT: "as long as named",
}

KEY_RESTS = {Effect.NOW: "as long as named, else 30 s, 60 s … at most 300 s"}

ENDING = """
Two faults ask the same candidate once more with less before the table applies: `unsupported_parameter` without the
named parameter, `capability_mismatch` with that kind of content described in text. A limit on tokens is never left out:
refused as `max_completion_tokens` it is asked again as `max_tokens`, and the other way round; where the protocol has no
other name, or that is refused too, the table applies. What a model refused is remembered for an hour and stands on the
page of its model service.
Where a provider has several keys (decision 20), these are one key's own: the next key that does not rest is asked at
once, within the same attempt, and this key rests. Afterwards one call tries it again by itself.

| class | how long the key rests |
|---|---|
@KEYS@
Only when no key is left the table above applies, to the last key's failure, or to the limit that ends first where
another key is only limited. Where every key rests already, the one that wakes first is asked.

A cooldown begun at once or by counting lasts 30 s, 60 s … at most 300 s; one request probes afterwards. A length that
the provider did not name itself is drawn anew each time, up to a tenth longer, never shorter. When every
candidate is cooling after an outage, the one that wakes first gets one last-resort try; when they are cooling for
want of quota or money, nobody is called.

`fire_drill` is what an administrator's fire drill gives every attempt at its provider, for 30, 60 or 300 s: nobody
is called, the next candidate is asked without a wait, and no cooldown, health, alert or key of the provider knows of
it afterwards. What a route says of `503` or `5xx` holds for it, but that it is never asked again.
"""


def document() -> str:
    """The whole file."""
    keys = "".join(
        f"| `{fault}` | {KEY_RESTS.get(effect, COOLDOWNS[effect])} |\n" for fault, effect in KEY_EFFECTS.items()
    )
    return OPENING + "".join(_line(fault, TABLE[fault]) for fault in Fault) + ENDING.replace("@KEYS@\n", keys + "\n")


def _line(fault: Fault, row: FaultRow) -> str:
    resilient = Action.NEXT if fault in RESILIENT_NEXT else row.seed
    cells = (
        row.meaning,
        f"`{fault}`",
        row.seed,
        resilient,
        row.strict,
        _cooldown(fault, row),
        _caller_gets(fault, row),
    )
    return f"| {' | '.join(cells)} | {'yes' if row.alert else ''} |\n"


def _cooldown(fault: Fault, row: FaultRow) -> str:
    if fault in COOLS_WHEN_PASSED_ON:
        return "at once where a route goes on"
    whole = row.scope is Scope.PROVIDER and row.effect is not Effect.NONE
    return f"{COOLDOWNS[row.effect]}{', whole provider' if whole else ''}"


def _caller_gets(fault: Fault, row: FaultRow) -> str:
    if fault in AFTER_CONTENT:
        return f"what came, then an error event `{row.code}` as the last one"
    if row.status == OWN_STATUS:
        return "the provider's own status, `upstream_<status>`"
    return f"{row.status} `{row.code}`"


if __name__ == "__main__":
    sys.stdout.write(document())
