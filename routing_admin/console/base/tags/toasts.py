"""Messages as toasts, with Undo where a revision was made.

`messages.success(request, _("3 artifacts deleted"), extra_tags="undo:41")` becomes a toast whose Undo button posts to
the URL named `undo` for revision 41. Changes without a revision are undone at a URL of their own:
`extra_tags="undo-url:/artifacts/restore/?at=…"`.
"""

from __future__ import annotations

from django.contrib.messages.storage.base import Message
from django.urls import NoReverseMatch, reverse

UNDO = "undo:"
UNDO_URL = "undo-url:"


def undo_url(extra_tags: str) -> str:
    """Return the URL that Undo posts to; empty if the message has none."""
    address = next((tag[len(UNDO_URL) :] for tag in extra_tags.split() if tag.startswith(UNDO_URL)), "")
    # Two slashes would begin the name of another host.
    if address.startswith("/") and not address.startswith("//"):
        return address
    revision = next((tag[len(UNDO) :] for tag in extra_tags.split() if tag.startswith(UNDO)), "")
    if not revision.isdecimal():
        return ""
    try:
        return reverse("undo", args=[int(revision)])
    except NoReverseMatch:
        return ""


def toast_of(message: Message) -> dict[str, str]:
    return {"text": str(message), "level": message.level_tag, "undo": undo_url(message.extra_tags or "")}
