"""About how many tokens a whole request takes with one model, and each file of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict

from capabilities.core.delivery.adaptation import Adapted, PartDelivery
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.tokens import Estimate, file_tokens, text_tokens
from capabilities.core.message import ChatRequest, FilePart, TextPart


def estimate_request(adapted: Adapted, model: str) -> int:
    """The tokens of a request in a model's own form; files whose measures nobody knows count as nothing."""
    media = (estimate_delivery(each, model) for each in adapted.deliveries if each.text is None)
    return _sum_words(adapted.chat) + sum(each.tokens for each in media if each)


def estimate_chat(chat: ChatRequest, model: str) -> int:
    """The tokens of a canonical request if its files went as they are."""
    files = (part for message in chat.messages for part in message.parts if isinstance(part, FilePart))
    return _sum_words(chat) + sum(each.tokens for each in _each_known(files, model))


def estimate_delivery(
    delivery: PartDelivery, model: str, estimate_text: Callable[[str], Estimate] = text_tokens
) -> Estimate | None:
    """The tokens of one file as it goes; None when the model or the file's measures are unknown."""
    if delivery.text is not None:
        return estimate_text(delivery.text)
    if delivery.delivery.outcome is not Outcome.CONVERTED:
        return file_tokens(model, delivery.file)
    images = [FilePart(each.kind, width=each.width, height=each.height) for each in delivery.natives]
    known = _each_known(images, model)
    return Estimate(sum(each.tokens for each in known), known[0].rule) if known and len(known) == len(images) else None


def _each_known(files: Iterable[FilePart], model: str) -> list[Estimate]:
    return [each for each in (file_tokens(model, file) for file in files) if each]


def _sum_words(chat: ChatRequest) -> int:
    words = [part.text for message in chat.messages for part in message.parts if isinstance(part, TextPart)]
    words += [json.dumps(asdict(tool), default=str, ensure_ascii=False) for tool in chat.tools]
    words += [call.arguments for message in chat.messages for call in message.tool_calls]
    return sum(text_tokens(each).tokens for each in words)
