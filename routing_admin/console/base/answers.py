"""How a view answers: 404, a fragment or the whole page, and a toast for what was done or refused."""

from __future__ import annotations

from typing import TypeVar

from django.contrib import messages
from django.http import Http404, HttpRequest

from capabilities.errors import ActionError
from capabilities.sentences import translate_refusal

UNPROCESSABLE = 422
R = TypeVar("R")


def require_found(row: R | None) -> R:
    """What was looked for. Raises `Http404` for None."""
    if row is None:
        raise Http404
    return row


def wants_fragment(request: HttpRequest) -> bool:
    """Whether a script asks for a fragment alone; a boosted link asks for the whole page."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.boosted


def add_toast(request: HttpRequest, text: str, revision: int | None = None) -> None:
    """A toast; with Undo of the revision that the action made, without where it made none."""
    messages.success(request, text, extra_tags=f"undo:{revision}" if revision else "")


def add_refusal_toast(request: HttpRequest, refusal: ActionError) -> None:
    """A toast with the reason why nothing was done."""
    messages.error(request, translate_refusal(refusal))
