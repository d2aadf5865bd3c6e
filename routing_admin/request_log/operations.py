"""Translated names of the operations other than chat, by surface (the API's name in the log)."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

OPERATION_NAMES: Mapping[str, str | Promise] = {
    "v1/embeddings": gettext_lazy("Embeddings"),
    "v1/completions": gettext_lazy("Completion"),
    "v1/moderations": gettext_lazy("Moderation"),
    "v1/rerank": gettext_lazy("Reranking"),
    "v1/transcriptions": gettext_lazy("Transcription"),
    "v1/translations": pgettext_lazy("of speech", "Translation of speech"),
    "v1/speech": gettext_lazy("Speech"),
    "v1/images": gettext_lazy("Image generation"),
    "v1/image-edits": gettext_lazy("Image editing"),
    "v1/image-variations": gettext_lazy("Image variation"),
}
"""Maps each surface to the name of its operation; chats have none."""

DESCRIBE = "describe"
"""Surface of calls that the gateway makes itself, so that a model describes a file that another model cannot read."""
DESCRIPTION_NAME = gettext_lazy("Description of a file")


def operation_name(surface: str) -> str:
    """Return the name of a surface's operation, or "" for a chat."""
    return str(DESCRIPTION_NAME if surface == DESCRIBE else OPERATION_NAMES.get(surface, ""))
