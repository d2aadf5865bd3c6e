"""The model list and single models in Anthropic's format, for Anthropic's clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

VERSION_HEADER = "anthropic-version"
"""Header that Anthropic's clients send with every call, and that no other clients send."""
MAX_PAGE = 1000
LIMIT = re.compile(r"[1-9][0-9]{0,3}")
UNKNOWN = "1970-01-01T00:00:00Z"
"""Value that Anthropic uses for a model whose date is unknown."""
NULL_FIELDS = dict.fromkeys(("deprecated_at", "retires_at", "line", "capabilities", "max_input_tokens", "max_tokens"))


def write_model(model: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an entry of OpenAI's model list to Anthropic's format."""
    fields = {"type": "model", "id": model["id"], "display_name": model["id"], "created_at": UNKNOWN}
    return {**fields, "lifecycle": "active", **NULL_FIELDS}


def write_page(models: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of up to `limit` models (1,000 by default) after `after_id` or before `before_id`."""
    names = [model["id"] for model in models]
    after, before, limit = (query.get(name, "") for name in ("after_id", "before_id", "limit"))
    size = min(int(limit), MAX_PAGE) if LIMIT.fullmatch(limit) else MAX_PAGE
    start, end = names.index(after) + 1 if after in names else 0, len(names)
    if before in names:
        end = names.index(before)
        start = max(start, end - size)
    page = [write_model(model) for model in models[start : min(end, start + size)]]
    has_more = start > 0 if before in names else start + size < len(names)
    ids = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"data": page, "has_more": has_more, **ids}
