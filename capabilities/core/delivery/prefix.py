"""Compare the content that a model receives in consecutive turns of a conversation.

Prompt caches and signed reasoning require that the prefix of a conversation does not change. Its text never changes,
but files can be delivered differently, so only deliveries are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from capabilities.core.delivery.adaptation import Adapted, CannotRead, PartDelivery, adapt
from capabilities.core.delivery.obstacles import Reason
from capabilities.core.delivery.reader import Reader
from capabilities.core.delivery.size_budget import SIZE_LIMIT_CODES
from capabilities.core.delivery.writing import TextStyle
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.translatable import Translatable, translatable

PREFIX_UNCHANGED = translatable("Prefix kept if the next turn adds another file like this.")
PREFIX_BROKEN = translatable(
    "If the next turn adds another file like this, the prefix breaks at message %(number)s, because a limit is "
    "full and half of it is freed. %(reason)s"
)
DELIVERED_DIFFERENTLY = translatable(
    "If the next turn adds another file like this, the prefix breaks at message %(number)s, because a file "
    "there is then delivered differently. %(reason)s"
)
"""Sentences shown in a preview. They predict whether the prefix will change in the next turn."""


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """The first file of an earlier turn that is now delivered differently, with its new delivery."""

    delivery: PartDelivery

    @property
    def message(self) -> int:
        """Return the index of the message that contains the file. All messages before it are unchanged."""
        return self.delivery.message

    @property
    def reason(self) -> Reason:
        return self.delivery.delivery.reason


def find_break(earlier: Adapted, later: Adapted) -> PrefixBreak | None:
    """Return the first file that the later turn delivers differently from the earlier one, or None.

    `later` contains the messages of `earlier`, followed by new ones.
    """
    # Compare the sent content, not the decisions: a different reason does not matter if the content is the same.
    for earlier_delivery, later_delivery in zip(earlier.deliveries, later.deliveries, strict=False):
        if (earlier_delivery.text, earlier_delivery.natives) != (later_delivery.text, later_delivery.natives):
            return PrefixBreak(later_delivery)
    return None


def predict_break(chat: ChatRequest, adapted: Adapted, reader: Reader, style: TextStyle) -> PrefixBreak | None:
    """Return the prefix break that would occur if the next turn added another file like the last one, or None."""
    # The text of the answer does not matter, because only file deliveries are compared.
    answer = Message(Role.ASSISTANT, (TextPart("."),))
    next_message = Message(Role.USER, (adapted.deliveries[-1].file,))
    next_adapted = adapt(replace(chat, messages=(*chat.messages, answer, next_message)), reader, style)
    if isinstance(next_adapted, CannotRead):
        is_old = next_adapted.delivery.message < len(chat.messages)
        return PrefixBreak(next_adapted.delivery) if is_old else None
    return find_break(adapted, next_adapted)


def describe_prediction(predicted: PrefixBreak | None) -> Translatable:
    """Return a sentence that states whether the prefix will stay the same.

    If not, it states at which message and why.
    """
    if predicted is None:
        return PREFIX_UNCHANGED
    template = PREFIX_BROKEN if predicted.reason.code in SIZE_LIMIT_CODES else DELIVERED_DIFFERENTLY
    return translatable(template, number=predicted.message + 1, reason=predicted.reason.sentence())
