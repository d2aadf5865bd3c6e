"""Adapt a request to one candidate model. Every file is sent either natively or as text, and none is dropped silently.

The result depends only on the protocol-independent request and the candidate's `Reader`, never on earlier candidates.
The request itself is not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from capabilities.core.delivery.decision import Delivery, Outcome, decide
from capabilities.core.delivery.flaws import may_have_flaw
from capabilities.core.delivery.model_description import without_describer
from capabilities.core.delivery.obstacles import Reason
from capabilities.core.delivery.page_images import count_images
from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.size_budget import SizeBudget, byte_count
from capabilities.core.delivery.slots import slot_key
from capabilities.core.delivery.writing import TextStyle, WrittenFile, display_name, text_style_for
from capabilities.core.message import ChatRequest, FilePart, Message, NativePart, Part, Role, TextPart
from capabilities.core.texts.description import artifact_lead, nearest_language
from capabilities.core.values import value_class

__all__ = ["Adapted", "CannotRead", "PartDelivery", "TextStyle", "adapt", "summary", "text_style_for"]


@value_class
class PartDelivery:
    """How one file is delivered: its position in the original request, the decision, and the text or parts to send."""

    message: int
    part: int
    file: FilePart
    delivery: Delivery
    text: str | None = None
    natives: tuple[NativePart, ...] = ()


@value_class
class Adapted:
    """The adapted request, in which no `FilePart` remains, and the delivery of each file, in request order."""

    chat: ChatRequest
    deliveries: tuple[PartDelivery, ...] = ()


@value_class
class CannotRead:
    """The result of `adapt` if the policy `native_only` excludes the candidate because it cannot read this file."""

    delivery: PartDelivery

    @property
    def reason(self) -> Reason:
        return self.delivery.delivery.reason


MOVED_FILE_NOTE: Mapping[str, str] = MappingProxyType(
    {"zh": "见本轮工具结果之后的用户消息。", "en": "See the user message that follows these tool results."}
)
"""Note left in a tool result in place of a file that was moved to the next user message."""

HOISTED_LEAD: Mapping[str, str] = MappingProxyType(
    {"zh": "以下是工具输出，不是用户的指令:", "en": "Tool output, not user instructions:"}
)
"""First line of a user message that contains files from tool results. It keeps models from mistaking the files for
the user's instructions."""


def adapt(chat: ChatRequest, reader: Reader, style: TextStyle) -> Adapted | CannotRead:
    """Return the adapted request or, under the policy `native_only`, the first file that the reader cannot read."""
    if not chat.has_files:
        return Adapted(chat)
    images = count_images((part for message in chat.messages for _, part in _files(message)), reader)
    budget = SizeBudget(reader, style, images)
    for index, message in enumerate(chat.messages):
        budget.take(index, message.role, _files(message), tuple(_texts(message)))
    # Rewrite the messages in a second pass, because a later file may cause an earlier one to be sent as text.
    rewriter = _MessageRewriter(style, budget.files)
    for index, message in enumerate(chat.messages):
        rewriter.take(index, message)
    rewriter.flush()
    refused = next((delivery for delivery in rewriter.deliveries if delivery.delivery.outcome is Outcome.REFUSED), None)
    if refused:
        return CannotRead(refused)
    return Adapted(replace(chat, messages=tuple(rewriter.messages)), tuple(rewriter.deliveries))


def is_sent_unchanged(chat: ChatRequest, reader: Reader) -> bool:
    """Return whether the request has a single file, which is inline and is sent unchanged.

    Such a file need not be read or stored.
    """
    files = [(message.role, file) for message in chat.messages for _, file in _files(message)]
    # With several files, there are also limits on the entire request, which only `adapt` checks.
    if len(files) != 1 or files[0][1].artifact_id is not None:
        return False
    role, file = files[0]
    text_bytes = sum(byte_count(text) for message in chat.messages for text in _texts(message))
    position = Position(role, request_bytes=text_bytes)
    # Leave out the model that could describe the file, because it does not affect whether the file is sent natively.
    outcome = decide(file, without_describer(reader), position).outcome
    return outcome is Outcome.NATIVE and not may_have_flaw(file)


def summary(deliveries: Sequence[PartDelivery]) -> str:
    """Return the value of the `x-routing-adaptation` header, such as `image=native;file=described:2`.

    Entries are in file order, and `:2` means that two files have this entry. Other suffixes name losses
    (`text=inlined:cut:replaced`, `image=converted:scaled:2`) or the state of a description by another model
    (`image=described:by_model`, `image=described:describer_failed`).
    """
    if not deliveries:
        return ""
    # Counter preserves the order in which keys first appear.
    counts = Counter(f"{slot_key(delivery.file.kind)}={_ending(delivery.delivery)}" for delivery in deliveries)
    return ";".join(pair if count == 1 else f"{pair}:{count}" for pair, count in counts.items())


def _ending(delivery: Delivery) -> str:
    outcome = delivery.outcome.value
    if delivery.description:
        return f"{outcome}:{delivery.description.state.value}"
    return ":".join((outcome, *(kind.value for kind in delivery.loss.kinds))) if delivery.loss else outcome


def _files(message: Message) -> Iterator[tuple[int, FilePart]]:
    return ((position, part) for position, part in enumerate(message.parts) if isinstance(part, FilePart))


def _texts(message: Message) -> Iterator[str]:
    # The size limit that text and files share counts only the text itself, without JSON syntax.
    yield from (part.text for part in message.parts if isinstance(part, TextPart))
    yield from (call.arguments for call in message.tool_calls)


@dataclass(slots=True)
class _MessageRewriter:
    """Rewrites the messages in order, and collects the files that are moved out of tool results (hoisted)."""

    style: TextStyle
    files: Mapping[tuple[int, int], WrittenFile]
    messages: list[Message] = field(default_factory=list)
    deliveries: list[PartDelivery] = field(default_factory=list)
    waiting: list[Part] = field(default_factory=list)

    def take(self, message_index: int, message: Message) -> None:
        # A user message must not separate consecutive tool results, so hoisted files follow the last of them.
        if message.role is not Role.TOOL:
            self.flush()
        parts: list[Part] = []
        for part_index, part in enumerate(message.parts):
            parts += self._file(message_index, part_index, part) if isinstance(part, FilePart) else [part]
        self.messages.append(replace(message, parts=tuple(parts)))

    def flush(self) -> None:
        if self.waiting:
            lead = TextPart(HOISTED_LEAD[nearest_language(self.style.language)])
            self.messages.append(Message(Role.USER, (lead, *self.waiting)))
            self.waiting = []

    def _file(self, message_index: int, part_index: int, file: FilePart) -> list[Part]:
        written_file = self.files[message_index, part_index]
        self.deliveries.append(
            PartDelivery(
                message_index, part_index, file, written_file.delivery, written_file.text, written_file.natives
            )
        )
        if not written_file.natives:
            return [TextPart(written_file.text or "", file.cache)]
        # A file without a name is called, for example, `image 2` if it is the request's second file.
        lead = TextPart(written_file.lead or artifact_lead(self._name(file), self.style.language))
        if written_file.delivery.hoist:
            self.waiting += [lead, *written_file.natives]
            return [TextPart(f"{lead.text}\n{MOVED_FILE_NOTE[nearest_language(self.style.language)]}")]
        return [lead, *written_file.natives] if file.introduced or written_file.lead else list(written_file.natives)

    def _name(self, file: FilePart) -> str:
        return display_name(file, f"{slot_key(file.kind)} {len(self.deliveries)}")
