"""Why a response ended, in its own words: the reason where it is incomplete, else its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.finish import CUT, FILTERED, WHOLE, Ending

ENDINGS: Mapping[str, Ending] = {
    "completed": WHOLE,
    "max_output_tokens": CUT,
    "content_filter": FILTERED,
}
"""Reasons to stop; to have called a tool is none of its own here."""
FAILURES: Mapping[str, int] = {"failed": 500, "cancelled": 503, "in_progress": 502, "queued": 502}
"""States in which a response that is said to be over is no answer, with the HTTP status each stands for."""


def reason_of(response: Mapping[str, Any]) -> Any:
    """Why it ended: the reason where it is incomplete, else its status."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return reason or response.get("status")
