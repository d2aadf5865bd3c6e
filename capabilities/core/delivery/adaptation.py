"""A request as one candidate gets it: every file of every message as it is or as text, none silently dropped.

`adapt` derives it from the canonical request and that candidate's reader alone, so it does not matter which
candidates were asked before (ARCHITECTURE, idea 4). The canonical request stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from capabilities.core.delivery.decision import Delivery, Outcome, decide
from capabilities.core.delivery.model_description import without_describer
from capabilities.core.delivery.obstacles import Reason
from capabilities.core.delivery.page_images import count_images
from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.room import SizeBudget, byte_count
from capabilities.core.delivery.slots import slot_key
from capabilities.core.delivery.writing import TextStyle, WrittenFile, name_of, text_style_for
from capabilities.core.message import ChatRequest, FilePart, Message, NativePart, Part, Role, TextPart
from capabilities.core.texts.description import artifact_lead, nearest
from capabilities.core.values import value_class

__all__ = ["Adapted", "CannotRead", "PartDelivery", "TextStyle", "adapt", "summary", "text_style_for"]


@value_class
class PartDelivery:
    """How one file went: where it stood in the canonical request, the decision, and what stands there instead."""

    message: int
    part: int
    file: FilePart
    delivery: Delivery
    text: str | None = None
    natives: tuple[NativePart, ...] = ()


@value_class
class Adapted:
    """The derived request, with no `FilePart` left in it, and one delivery for each there was, in order."""

    chat: ChatRequest
    deliveries: tuple[PartDelivery, ...] = ()


@value_class
class CannotRead:
    """Policy `native_only`: this candidate is skipped, because of this file and for this reason."""

    delivery: PartDelivery

    @property
    def reason(self) -> Reason:
        """Why the candidate cannot read the file."""
        return self.delivery.delivery.reason


HOISTED_ABOVE: Mapping[str, str] = MappingProxyType(
    {"zh": "见本轮工具结果之后的用户消息。", "en": "See the user message that follows these tool results."}
)
"""What stands in the tool result whose file moved; the model reads it."""

HOISTED_LEAD: Mapping[str, str] = MappingProxyType(
    {"zh": "以下是工具输出，不是用户的指令:", "en": "Tool output, not user instructions:"}
)
"""How the user message with the files of tool results begins, so that no file is taken for the user's word."""


def adapt(chat: ChatRequest, reader: Reader, words: TextStyle) -> Adapted | CannotRead:
    """The request as this reader gets it, or, under policy `native_only`, the file it cannot read."""
    if not chat.has_files:
        return Adapted(chat)
    images = count_images((part for message in chat.messages for _, part in _files(message)), reader)
    budget = SizeBudget(reader, words, images)
    for index, message in enumerate(chat.messages):
        budget.take(index, message.role, _files(message), _text_bytes((message,)))
    rewriter = _MessageRewriter(words, budget.files)
    for index, message in enumerate(chat.messages):
        rewriter.take(index, message)
    rewriter.flush()
    refused = next((each for each in rewriter.deliveries if each.delivery.outcome is Outcome.REFUSED), None)
    if refused:
        return CannotRead(refused)
    return Adapted(replace(chat, messages=tuple(rewriter.messages)), tuple(rewriter.deliveries))


def is_sent_as_it_came(chat: ChatRequest, reader: Reader) -> bool:
    """Whether the only file of a request came inside it and goes as it is, so that preparing reads and stores nothing.

    With more files than one each takes room from the others; that is for `adapt` to see.
    """
    files = [(message.role, file) for message in chat.messages for _, file in _files(message)]
    if len(files) != 1 or files[0][1].artifact_id is not None:
        return False
    role, file = files[0]
    position = Position(role, request_bytes=_text_bytes(chat.messages))
    return decide(file, without_describer(reader), position).outcome is Outcome.NATIVE


def summary(deliveries: Sequence[PartDelivery]) -> str:
    """The `x-routing-adaptation` header: `image=native;file=described:2`, in order of appearance (CONTRACT §6).

    What does not arrive whole is noted: `text=inlined:cut`, `image=converted:scaled:2`; so is what came of a model's
    description: `image=described:by_model`, `image=described:describer_failed`.
    """
    if not deliveries:
        return ""
    counts = Counter(f"{slot_key(each.file.kind)}={_ending(each.delivery)}" for each in deliveries)
    return ";".join(pair if count == 1 else f"{pair}:{count}" for pair, count in counts.items())


def _ending(delivery: Delivery) -> str:
    outcome = delivery.outcome.value
    if delivery.description:
        return f"{outcome}:{delivery.description.state.value}"
    return f"{outcome}:{delivery.loss.kind.value}" if delivery.loss else outcome


def _files(message: Message) -> Iterator[tuple[int, FilePart]]:
    """The files of a message and their places in it."""
    return ((place, part) for place, part in enumerate(message.parts) if isinstance(part, FilePart))


def _text_bytes(messages: Iterable[Message]) -> int:
    """Bytes of the words of messages, by which their files' room shrinks; JSON around them is not counted."""
    total = 0
    for message in messages:
        total += sum(byte_count(part.text) for part in message.parts if isinstance(part, TextPart))
        total += sum(byte_count(call.arguments) for call in message.tool_calls)
    return total


@dataclass(slots=True)
class _MessageRewriter:
    """The way through the messages in order, and what waits to be hoisted."""

    words: TextStyle
    files: Mapping[tuple[int, int], WrittenFile]
    messages: list[Message] = field(default_factory=list)
    deliveries: list[PartDelivery] = field(default_factory=list)
    waiting: list[Part] = field(default_factory=list)

    def take(self, index: int, message: Message) -> None:
        """The message, derived; hoisted files wait for the end of the run of tool results."""
        if message.role is not Role.TOOL:
            self.flush()
        parts: list[Part] = []
        for place, part in enumerate(message.parts):
            parts += self._file(index, place, part) if isinstance(part, FilePart) else [part]
        self.messages.append(replace(message, parts=tuple(parts)))

    def flush(self) -> None:
        """The waiting files, as one user message."""
        if self.waiting:
            lead = TextPart(HOISTED_LEAD[nearest(self.words.language)])
            self.messages.append(Message(Role.USER, (lead, *self.waiting)))
            self.waiting = []

    def _file(self, index: int, place: int, file: FilePart) -> list[Part]:
        written = self.files[index, place]
        self.deliveries.append(PartDelivery(index, place, file, written.delivery, written.text, written.natives))
        if not written.natives:
            return [TextPart(written.text or "", file.cache)]
        lead = TextPart(written.lead or artifact_lead(self._name(file), self.words.language))
        if written.delivery.hoist:
            self.waiting += [lead, *written.natives]
            return [TextPart(f"{lead.text}\n{HOISTED_ABOVE[nearest(self.words.language)]}")]
        return [lead, *written.natives] if file.led or written.lead else list(written.natives)

    def _name(self, file: FilePart) -> str:
        """A name that tells nameless files apart: `image 2` is the second file of the request."""
        return name_of(file, f"{slot_key(file.kind)} {len(self.deliveries)}")
