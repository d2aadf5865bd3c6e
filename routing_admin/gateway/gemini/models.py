"""GET /v1beta/models and /v1beta/models/{name}: what an agent may use, as Gemini lists it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

METHODS = ("generateContent", "countTokens")
MODELS = "models/"
MAX_PAGE = 1000
DIGITS = re.compile(r"[0-9]{1,9}")


def write_model(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model of OpenAI's list as Gemini's."""
    reads, writes = (", ".join(model["capabilities"][side]) for side in ("input", "output"))
    return {
        "name": MODELS + model["id"],
        "version": "1",
        "displayName": model["id"],
        "description": f"{model['owned_by']}: {reads} → {writes}",
        "supportedGenerationMethods": list(METHODS),
    }


def write_page(models: list[dict[str, Any]], size: str, token: str) -> dict[str, Any]:
    """Return a page of models; its token is the number of those before the next one."""
    start = int(token) if DIGITS.fullmatch(token) else 0
    end = start + min(int(size) if DIGITS.fullmatch(size) and int(size) else MAX_PAGE, MAX_PAGE)
    page = {"models": [write_model(each) for each in models[start:end]]}
    return {**page, "nextPageToken": str(end)} if end < len(models) else page
