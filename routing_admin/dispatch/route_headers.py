"""What an answer's headers say of its route: who answered, after how many attempts, with which files, without what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote

from routing_admin.core.fallback.chain import Attempt
from routing_admin.request_log.entries import list_first

SAFE = " !#$&'()*+,/:;=?@[]~"
SKIPPED = "skipped_"
MAX_SKIPS = 20


def headers_of_attempts(attempts: Sequence[Attempt]) -> dict[str, str]:
    """The headers of an answer (CONTRACT §6), whose attempts these are, who answered last."""
    last = attempts[-1]
    headers = {
        "x-routing-provider": header_value(last.provider),
        "x-routing-model": header_value(last.model),
        "x-routing-attempts": str(len(attempts)),
    }
    if len(attempts) > 1 and (skips := skips_in(attempts)):
        headers["x-routing-skipped"] = skips
    if last.adaptation:
        headers["x-routing-adaptation"] = header_value(last.adaptation)
    if last.dropped_params:
        headers["x-routing-dropped"] = header_value(", ".join(list_first(last.dropped_params)))
    return headers


def headers_of_failure(attempts: Sequence[Attempt]) -> dict[str, str]:
    """Those of an error that these attempts led to; none where nobody was reached."""
    if not attempts:
        return {}
    skips = skips_in(attempts)
    return {"x-routing-attempts": str(len(attempts)), **({"x-routing-skipped": skips} if skips else {})}


def skips_in(attempts: Sequence[Attempt]) -> str:
    """Who was passed by without being asked, and why, as `x-routing-skipped` says it; empty where nobody was."""
    skipped = [each for each in attempts if each.outcome.startswith(SKIPPED)]
    told = [f"{each.provider}/{each.model}={each.outcome.removeprefix(SKIPPED)}" for each in skipped[:MAX_SKIPS]]
    return header_value("; ".join(told))


@lru_cache(maxsize=1000)
def header_value(text: str) -> str:
    """A text as a header may hold it: what is no plain ASCII is written as in a URL."""
    return quote(text, safe=SAFE)
