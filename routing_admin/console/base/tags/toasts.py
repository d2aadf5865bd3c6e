"""A message as a toast, with Undo where a revision was made.

`messages.success(request, _("3 artifacts deleted"), extra_tags="undo:41")` becomes a toast whose Undo button
posts to the URL named `undo` for revision 41. What is no revision is taken back at an address of its own:
`extra_tags="undo-url:/artifacts/restore/?at=…"`.
"""

from __future__ import annotations

from django.contrib.messages.storage.base import Message
from django.urls import NoReverseMatch, reverse

UNDO = "undo:"
UNDO_URL = "undo-url:"


def undo_url(extra_tags: str) -> str:
    """Where Undo posts to, or the empty string when the message has none."""
    address = next((tag[len(UNDO_URL) :] for tag in extra_tags.split() if tag.startswith(UNDO_URL)), "")
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
    """The message as the browser's script takes it: text, level and, when there is something to undo, the URL."""
    return {"text": str(message), "level": message.level_tag, "undo": undo_url(message.extra_tags or "")}
