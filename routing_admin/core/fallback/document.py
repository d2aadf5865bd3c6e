"""Generate docs/faults.md: `python -m routing_admin.core.fallback.document > docs/faults.md`."""

from __future__ import annotations

import sys

from capabilities.core.wire import Fault
from routing_admin.core.fallback.policy import DEFAULT_RETRIES
from routing_admin.core.fallback.table import GROUPS, OWN_STATUS, TABLE, Effect, FaultRow, Scope, is_key_fault

OPENING = f"""# Faults: what can come back instead of an answer, and the one outcome each has

This page is for anyone who asks why a call failed, or went on to another candidate. It is written from
`routing_admin/core/fallback/table.py`: `python -m routing_admin.core.fallback.document > docs/faults.md`.

A route's preset decides (`seed` is the default). Its `onError` can override that by a fault's code, a status such as
`404`, or a group:
{", ".join(f"`{group}`" for group in GROUPS)}.

- **retry**: the same candidate again, at most {DEFAULT_RETRIES} times by default, then the next one
- **next**: the next candidate at once
- **raise**: an error at once, with every attempt so far
- `strict` retries every 429 and 5xx; `resilient` lets a provider's own refusals go on, marked red

What the agent sees is the status and code if this fault is raised, or if every candidate ended with it. An exhausted
chain answers `all_providers_failed`: with 429 if every attempt was a 429, 504 if every one timed out, else 502.

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
## Once more with less

Two faults try the same candidate once more before the table applies: `unsupported_parameter` without the named
parameter, `capability_mismatch` with that kind of content described in text. A limit on tokens is never left out: if
the model refuses `max_completion_tokens`, it gets `max_tokens`, and the other way round. If the protocol has no other
name, or that is refused, too, the table applies.

What a model refused is kept, also for other processes and after a restart, and shown on its model service's page, which
can forget it. It is forgotten when the model or its provider's address changes. A parameter of which only the value was
refused (`Supported values are: …`) is left out for an hour, in the process that met it.

## Several keys of a provider

If a provider has several keys ([record 13](decisions/0013-keys-of-a-provider.md)), these faults belong to one key. The
next key that does not rest is tried at once, within the same attempt, and this key rests. Afterwards one call tries it
again.

| class | how long the key rests |
|---|---|
@KEYS@
If no key is left, the table above applies to the last key's failure, or to the limit that ends first if another key is
only limited. If every key already rests, the one that recovers first is used.

## Cooldowns

A cooldown that begins at once or by counting lasts 30 s, 60 s … at most 300 s; then one request probes. A length that
the provider did not name is up to a tenth longer by chance, never shorter. If every candidate is cooling after an
outage, the one that recovers first gets one last-resort try. If they are cooling for want of quota or money, none is
called.

## Fire drills

During a fire drill, every request that reaches the provider gets `fire_drill` instead of a call, for 30, 60 or 300 s.
The next candidate is asked without a wait. The drill leaves no trace in cooldowns, health, alerts or keys. A route's
rule for `503` or `5xx` applies to it, except that it is never retried.

*Test connection*, *Fetch models* and probes do call the provider during a drill: they check the provider itself, not
the chains.
"""


def document() -> str:
    effects = {fault: row.key_effect for fault, row in TABLE.items() if is_key_fault(fault)}
    keys = "".join(f"| `{fault}` | {KEY_RESTS.get(effect, COOLDOWNS[effect])} |\n" for fault, effect in effects.items())
    return OPENING + "".join(_line(fault, TABLE[fault]) for fault in Fault) + ENDING.replace("@KEYS@\n", keys + "\n")


def _line(fault: Fault, row: FaultRow) -> str:
    cells = (
        row.meaning,
        f"`{fault}`",
        row.seed,
        row.resilient or row.seed,
        row.strict or row.seed,
        _cooldown(row),
        _caller_gets(row),
    )
    return f"| {' | '.join(cells)} | {'yes' if row.alert else ''} |\n"


def _cooldown(row: FaultRow) -> str:
    if row.cools_when_passed_on:
        return "at once where a route goes on"
    covers_provider = row.scope is Scope.PROVIDER and row.effect is not Effect.NONE
    return f"{COOLDOWNS[row.effect]}{', whole provider' if covers_provider else ''}"


def _caller_gets(row: FaultRow) -> str:
    if row.after_content:
        return f"what came, then an error event `{row.code}` as the last one"
    if row.status == OWN_STATUS:
        return "the provider's own status, `upstream_<status>`"
    return f"{row.status} `{row.code}`"


if __name__ == "__main__":
    sys.stdout.write(document())
