"""Carry out delivery decisions: convert each file to the message parts that a model receives.

Reading a file's content can still fail. If no text is found, an image cannot be converted, or the bytes are
unavailable, no exception is raised. Instead, a description that states the reason replaces the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from capabilities.core.delivery.decision import (
    ARCHIVES,
    ContentPolicy,
    Delivery,
    Loss,
    LossKind,
    Outcome,
    Position,
    Reader,
    decide,
    decide_description,
    decide_text_form,
    measure_loss,
)
from capabilities.core.delivery.flaws import find_flaw
from capabilities.core.delivery.model_description import (
    DescriptionState,
    FindDescription,
    ModelDescription,
    find_no_description,
)
from capabilities.core.delivery.obstacles import Reason, ReasonCode, make_reason
from capabilities.core.delivery.page_images import draw_pages
from capabilities.core.message import ChatRequest, Converted, FilePart, NativePart, Rendered, Text, UnreadableError
from capabilities.core.texts.description import (
    HEAD_CHARS,
    TAIL_CHARS,
    Flaw,
    artifact_lead,
    artifact_reference,
    attachment_block,
    conversion_note,
    description_slot,
    drawing_note,
    extraction_note,
    failed_block,
    head_and_tail,
    invalid_bytes_note,
    reference_line,
    treatment_lead,
)
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Kind


def find_no_agent(_: FilePart) -> Sequence[str]:
    return ()


@value_class
class TextStyle:
    """Options for text that replaces files: its language, the agents to suggest, and the available tools.

    The text remains in the conversation, so `agents_for` returns only permanent agents, which administrators have
    configured. `description_of` returns another model's description of a file.
    """

    language: str | None = None
    agents_for: Callable[[FilePart], Sequence[str]] = find_no_agent
    has_send_message: bool = False
    has_get_artifact: bool = False
    description_of: FindDescription = find_no_description


def text_style_for(
    chat: ChatRequest, language: str | None, agents_for: Callable[[FilePart], Sequence[str]]
) -> TextStyle:
    # Do not mention a tool in the text if the request does not offer it.
    return TextStyle(language, agents_for, chat.has_tool("send_message"), chat.has_tool("get_artifact"))


@value_class
class WrittenFile:
    """A file as it will be sent: its final delivery, and either its text or its native parts.

    `lead` is the text that precedes converted parts. It is empty for a file that is sent unchanged.
    """

    delivery: Delivery
    text: str | None = None
    natives: tuple[NativePart, ...] = ()
    lead: str = ""


def display_name(file: FilePart, otherwise: str = "") -> str:
    """Return the first available name for a file: filename, artifact id, URL, `otherwise`, or kind."""
    return file.filename or file.artifact_id or file.url or otherwise or file.kind.value


def write(file: FilePart, reader: Reader, position: Position, style: TextStyle) -> WrittenFile:
    return _write_as(decide(file, reader, position), file, reader, position, style)


def write_as_text(file: FilePart, reader: Reader, reason: Reason, style: TextStyle, tokens: int = 0) -> WrittenFile:
    """Write a file as text, although it could be sent natively. `reason` states why.

    `tokens` is the number of tokens that precede the file.
    """
    # Do not use the policy `convert`, because page images would need more capacity than is left.
    without_convert = replace(reader, policies=reader.policies - {ContentPolicy.CONVERT})
    delivery = decide_text_form(file, without_convert, reason)
    return _write_as(delivery, file, without_convert, Position(tokens=tokens), style)


def _write_as(delivery: Delivery, file: FilePart, reader: Reader, position: Position, style: TextStyle) -> WrittenFile:
    try:
        return WRITERS[delivery.outcome](file, delivery, reader, position, style)
    # The bytes may have become unavailable since the decision.
    except UnreadableError as error:
        return _write_description_instead(
            file, reader, position, style, make_reason(ReasonCode.UNREADABLE, problem=error.reason)
        )


FLAWS: Mapping[ReasonCode, Flaw] = MappingProxyType({ReasonCode.LOCKED: Flaw.LOCKED, ReasonCode.DAMAGED: Flaw.DAMAGED})
CANNOT_BE_OPENED = frozenset({ReasonCode.UNREADABLE, *FLAWS})
"""Reasons that prevent every other agent and model from reading the file, too."""


def description(file: FilePart, reason: Reason, style: TextStyle) -> str:
    """Return the text that replaces a file: its metadata, or a note that its bytes cannot be read (MCR-E4)."""
    if reason.code is ReasonCode.UNREADABLE:
        return failed_block(file.filename, file.artifact_id, style.language)
    # Suggest no agents for a locked or damaged file, because their models could not open it either.
    flaw = FLAWS.get(reason.code)
    return attachment_block(
        file.kind,
        artifact_reference(file.artifact_id) if file.artifact_id else None,
        file.filename,
        file.size,
        None if file.mime_type.endswith("/*") else file.mime_type,
        style.language,
        () if flaw else style.agents_for(file),
        style.has_send_message,
        file.url,
        only_configured=True,
        flaw=flaw,
    )


def _write_description_instead(
    file: FilePart, reader: Reader, position: Position, style: TextStyle, reason: Reason
) -> WrittenFile:
    return _write_description(file, decide_description(file, reader, reason), reader, position, style)


def _natively(file: FilePart, delivery: Delivery, reader: Reader, position: Position, style: TextStyle) -> WrittenFile:
    if flaw := find_flaw(file):
        # The entries of a locked archive can still be listed.
        decision = decide_text_form if file.mime_type in ARCHIVES else decide_description
        return _write_as(decision(file, reader, flaw), file, reader, position, style)
    blob = file.content.blob() if file.content else None
    # Send the URL only if there are no bytes. `decide` has checked that the slot accepts URLs.
    url = None if blob else file.url
    part = NativePart(file.kind, file.mime_type, blob, url, file.filename, file.detail, file.cache)
    return WrittenFile(delivery, natives=(part,))


def _write_converted(
    file: FilePart, delivery: Delivery, reader: Reader, position: Position, style: TextStyle
) -> WrittenFile:
    if file.kind is not Kind.IMAGE:
        pages = _write_pages(file, delivery, reader, position, style)
        reason = make_reason(ReasonCode.NOT_CONVERTED, mime_type=file.mime_type)
        return pages or _write_description_instead(file, reader, position, style, find_flaw(file) or reason)
    converted = file.content.convert(delivery.target) if file.content and delivery.target else None
    if converted is None:
        reason = make_reason(ReasonCode.NOT_CONVERTED, mime_type=file.mime_type)
        return _write_description_instead(file, reader, position, style, reason)
    # The pages of an image, such as a TIFF, are sent like those of a document.
    if (
        converted.frames > 1
        and (pages := _write_pages(file, delivery, reader, position, style))
        and len(pages.natives) > 1
    ):
        return pages
    size = converted.blob.size
    image = replace(file, mime_type=converted.mime_type, size=size, width=converted.width, height=converted.height)
    # The converted image may still exceed a limit, so decide again with its actual size.
    decision = decide(image, reader, position)
    if decision.outcome not in (Outcome.NATIVE, Outcome.HOISTED):
        return _write_description_instead(file, reader, position, style, decision.reason)
    loss = measure_loss(LossKind.CUT, 1, converted.frames) or _lost_pixels(file, converted)
    final_delivery = replace(delivery, mime_type=converted.mime_type, hoist=decision.hoist, loss=loss)
    treatment = conversion_note(
        file.mime_type, converted.mime_type, converted.width, converted.height, style.language, converted.frames
    )
    return WrittenFile(final_delivery, natives=(_converted_part(file, converted),), lead=_lead(file, treatment, style))


def _converted_part(file: FilePart, image: Converted) -> NativePart:
    size = {"width": image.width, "height": image.height}
    return NativePart(Kind.IMAGE, image.mime_type, image.blob, None, file.filename, file.detail, file.cache, **size)


def _lost_pixels(file: FilePart, image: Converted) -> Loss | None:
    pixels_before = image.original_pixels or (file.width or 0) * (file.height or 0)
    pixels_after = (image.width or 0) * (image.height or 0)
    return measure_loss(LossKind.SCALED, pixels_after, pixels_before) if pixels_after else None


def _lead(file: FilePart, treatment: str, style: TextStyle) -> str:
    reference = artifact_reference(file.artifact_id) if file.artifact_id else None
    return treatment_lead(display_name(file), reference, treatment, style.language)


def _write_pages(
    file: FilePart, delivery: Delivery, reader: Reader, position: Position, style: TextStyle
) -> WrittenFile | None:
    pages = draw_pages(file, reader, position)
    # If no page can be drawn or none fits, the caller writes a description.
    if pages is None:
        return None
    loss = measure_loss(LossKind.CUT, len(pages.images), pages.total)
    parts = tuple(_converted_part(file, image) for image in pages.images.values())
    treatment = drawing_note(file.mime_type, tuple(pages.images), pages.total, style.language)
    final_delivery = Delivery(
        Outcome.CONVERTED, delivery.reason, pages.slot, parts[0].mime_type, pages.hoist, loss=loss
    )
    return WrittenFile(final_delivery, natives=parts, lead=_lead(file, treatment, style))


def _write_text(
    file: FilePart, delivery: Delivery, reader: Reader, position: Position, style: TextStyle
) -> WrittenFile:
    text, delivery = _find_text(file, delivery)
    if text is None:
        reason = make_reason(ReasonCode.NO_TEXT_FOUND, mime_type=file.mime_type)
        # A scan has no text, but the model may accept images of its pages. If they can be drawn, the file is neither
        # locked nor damaged.
        as_pages = _write_pages(file, replace(delivery, reason=reason), reader, position, style)
        return as_pages or _write_description_instead(file, reader, position, style, find_flaw(file) or reason)
    limit = reader.text_limit.max_chars(text.text, reader.window, position.tokens)
    tail_chars = limit * TAIL_CHARS // (HEAD_CHARS + TAIL_CHARS)
    excerpt = head_and_tail(
        text.text,
        style.language,
        head_chars=limit - tail_chars,
        tail_chars=tail_chars,
        artifact_ref=artifact_reference(file.artifact_id) if file.artifact_id else None,
        has_get_artifact=style.has_get_artifact and file.artifact_id is not None,
    )
    if excerpt.cut and delivery.outcome is Outcome.INLINED:
        delivery = replace(delivery, reason=make_reason(ReasonCode.LONG_TEXT, actual=excerpt.total_chars, limit=limit))
    lead = artifact_lead(display_name(file), style.language)
    if delivery.outcome is Outcome.EXTRACTED:
        lead = _lead(file, extraction_note(file.mime_type, style.language), style)
    invalid_bytes = invalid_bytes_note(text.invalid_bytes, text.source, style.language) if text.invalid_bytes else ""
    lines = (lead, *filter(None, (text.note, invalid_bytes)), excerpt.text)
    return WrittenFile(replace(delivery, loss=_lost_text(text, excerpt.shown_chars)), "\n".join(lines))


def _lost_text(text: Text, arrives: int) -> Loss | None:
    if text.share is None:
        return Loss(LossKind.CUT)
    # Combine two losses: text that was not extracted from the file, and extracted text that is not sent.
    share = text.share * arrives / len(text.text) if text.text else text.share
    if cut := measure_loss(LossKind.CUT, share, 1):
        return replace(cut, count=text.invalid_bytes)
    return Loss(LossKind.REPLACED, count=text.invalid_bytes) if text.invalid_bytes else None


def _find_text(file: FilePart, delivery: Delivery) -> tuple[Text | None, Delivery]:
    content = file.content
    if content is None:
        return None, delivery
    marked_up = file.kind is Kind.TEXT
    if delivery.outcome is Outcome.EXTRACTED:
        rendered = (
            content.render() if marked_up and isinstance(content, Rendered) else None if marked_up else content.text()
        )
        if rendered is not None and rendered.text.strip():
            return rendered, delivery
    # If no text can be extracted from a web page, it is sent with its markup.
    return (content.text(), replace(delivery, outcome=Outcome.INLINED)) if marked_up else (None, delivery)


def _write_description(
    file: FilePart, delivery: Delivery, _: Reader, position: Position, style: TextStyle
) -> WrittenFile:
    facts = description(file, delivery.reason, style)
    if not delivery.describer:
        return WrittenFile(delivery, facts)
    by_model = style.description_of(file, delivery.describer, position.message)
    return WrittenFile(replace(delivery, description=by_model), _add_description(facts, by_model, file, style))


def _add_description(facts: str, by_model: ModelDescription, file: FilePart, style: TextStyle) -> str:
    if by_model.state is DescriptionState.FAILED:
        return facts
    block = by_model.text or description_slot(by_model.describer, style.language)
    reference = reference_line(file.artifact_id, style.language) if file.artifact_id else ""
    return "\n".join(filter(None, (facts, block, reference)))


Writer = Callable[[FilePart, Delivery, Reader, Position, TextStyle], WrittenFile]

WRITERS: Mapping[Outcome, Writer] = MappingProxyType(
    {
        Outcome.NATIVE: _natively,
        Outcome.HOISTED: _natively,
        Outcome.CONVERTED: _write_converted,
        Outcome.EXTRACTED: _write_text,
        Outcome.INLINED: _write_text,
        Outcome.DESCRIBED: _write_description,
        Outcome.REFUSED: _write_description,
    }
)
"""Maps each delivery outcome to the function that carries it out."""
