"""What two descriptions of the same content have in common, so that the second is never asked for."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass

from capabilities.core.describing.prompt import PROMPT_VERSION
from capabilities.core.texts.phrases import nearest


@dataclass(frozen=True, slots=True)
class DescriptionKey:
    """One description: `content` is the hash of the file's bytes, `describer` the service or `provider/model`.

    `language` is `zh` or `en`; `question` is the hash of the question, empty without one.
    """

    content: str
    describer: str
    prompt_version: int
    language: str
    question: str

    @property
    def digest(self) -> str:
        """One word for all of it, 64 hexadecimal digits."""
        return _hash("\0".join(map(str, astuple(self))))


def description_key(content: str, describer: str, language: str | None, question: str | None) -> DescriptionKey:
    """The key of what a describer would be asked today."""
    hashed = _hash(question) if question else ""
    return DescriptionKey(content, describer, PROMPT_VERSION, nearest(language), hashed)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
