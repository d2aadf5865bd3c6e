"""Decide how a file is delivered to a model, as a pure function of file, model and position.

Previews, get_artifact, agent messages and request attempts all call `decide`, so previews match requests. A
`Reader` represents the receiving model, and its protocol has a `Slot` for each kind of file that it accepts. A file
that fits its slot is sent natively. Otherwise, the first check in `OBSTACLES` that fails gives the reason, and the
reader's policies may allow another form, such as extracted text. If they do not, the model receives a description of
the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.delivery.model_description import ModelDescription, find_describer, without_describer
from capabilities.core.delivery.obstacles import OBSTACLES, Reason, ReasonCode, make_reason, tool_result_slot
from capabilities.core.delivery.reader import ContentPolicy, Position, Reader, parse_policies
from capabilities.core.delivery.slots import Slot
from capabilities.core.message import Blob, Converted, ConvertTo, FilePart, Role, Text, UnreadableError
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Kind


class LossKind(StrEnum):
    """How part of a file is lost during delivery. The value appears in the `x-routing-adaptation` header."""

    CUT = "cut"
    SCALED = "scaled"
    REPLACED = "replaced"


SENTENCES: Mapping[tuple[LossKind, *tuple[str, ...]], str] = MappingProxyType(
    {
        (LossKind.CUT, "percent"): translatable("Cut: %(percent)s%% is missing."),
        (LossKind.CUT, "percent", "count"): translatable(
            "Cut: %(percent)s%% is missing. Bytes that cannot be decoded arrive as U+FFFD: %(count)s."
        ),
        (LossKind.CUT,): translatable("Cut: only the beginning arrives."),
        (LossKind.SCALED, "percent"): translatable("Scaled down: %(percent)s%% fewer pixels."),
        (LossKind.SCALED,): translatable("Scaled down."),
        (LossKind.REPLACED, "count"): translatable("Bytes that cannot be decoded arrive as U+FFFD: %(count)s."),
    }
)
"""English sentences for each kind of loss and the numbers that are known. They are translated when displayed."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Part of a file that is not delivered. `share` is the lost fraction (0 to 1), or None if unknown.

    `count` is the number of undecodable bytes that were replaced. Truncated text can contain such bytes, too.
    """

    kind: LossKind
    share: float | None = None
    count: int = 0

    @property
    def percent(self) -> int | None:
        # Never show 0% or 100%, because part of the file is lost and part of it is delivered.
        return None if self.share is None else min(max(round(self.share * 100), 1), 99)

    @property
    def kinds(self) -> tuple[LossKind, ...]:
        also = (LossKind.REPLACED,) if self.count and self.kind is not LossKind.REPLACED else ()
        return (self.kind, *also)

    def sentence(self) -> Translatable:
        known = {"percent": self.percent, "count": self.count or None}
        facts = {name: number for name, number in known.items() if number is not None}
        return Translatable(SENTENCES[self.kind, *facts], facts)


def measure_loss(kind: LossKind, arrives: float, whole: float) -> Loss | None:
    """Return the loss if only `arrives` of `whole` is delivered, or None if nothing is lost.

    Both numbers must have the same unit, such as pages or pixels.
    """
    return Loss(kind, 1 - arrives / whole) if arrives < whole else None


__all__ = [
    "ContentPolicy",
    "Delivery",
    "DeliveryForm",
    "Outcome",
    "Position",
    "Reader",
    "can_read",
    "decide",
    "decide_text_form",
    "parse_policies",
]


class Outcome(StrEnum):
    """The result of a delivery decision. Every file in every message has exactly one."""

    NATIVE = "native"
    CONVERTED = "converted"
    EXTRACTED = "extracted"
    INLINED = "inlined"
    HOISTED = "hoisted"
    DESCRIBED = "described"
    REFUSED = "refused"


class DeliveryForm(StrEnum):
    """How a delivery is shown to users. If part of the file is lost, CUT is shown instead of AS_IS or CONVERTED."""

    AS_IS = "as_is"
    CONVERTED = "converted"
    CUT = "cut"
    DESCRIBED = "described"


FORMS: Mapping[Outcome, DeliveryForm] = MappingProxyType(
    {
        Outcome.NATIVE: DeliveryForm.AS_IS,
        Outcome.INLINED: DeliveryForm.AS_IS,
        Outcome.HOISTED: DeliveryForm.AS_IS,
        Outcome.CONVERTED: DeliveryForm.CONVERTED,
        Outcome.EXTRACTED: DeliveryForm.CONVERTED,
        Outcome.DESCRIBED: DeliveryForm.DESCRIBED,
        Outcome.REFUSED: DeliveryForm.DESCRIBED,
    }
)
"""The form shown to users for each outcome, unless part of the file is lost."""


@value_class
class Delivery:
    """The decision for a file and its reason.

    `reason` states why the file is or is not sent natively. `mime_type` is the delivered type. If `hoist` is set, the
    file is moved from a tool result to the next user message. `target` specifies an image conversion. `describer` is
    the model that describes the file, or empty if only metadata is sent. `loss` (the part of the file that is not
    delivered) and `description` (by `describer`) are set once the delivery has been carried out.
    """

    outcome: Outcome
    reason: Reason
    slot: Slot | None = None
    mime_type: str | None = None
    hoist: bool = False
    target: ConvertTo | None = None
    loss: Loss | None = None
    describer: str = ""
    description: ModelDescription | None = None

    @property
    def form(self) -> DeliveryForm:
        return DeliveryForm.CUT if self.loss else FORMS[self.outcome]


FIRST_POSITION = Position()
"""Position to assume if none is known: the request's first file, in a user message."""


def decide(file: FilePart, reader: Reader, position: Position = FIRST_POSITION) -> Delivery:
    """Return how the file is delivered to the reader at this position. The function is deterministic."""
    if file.unreadable or not (file.content or file.url):
        return Delivery(Outcome.DESCRIBED, make_reason(ReasonCode.UNREADABLE, problem=file.unreadable or "failed"))
    slot = reader.slots.get(file.kind)
    if file.kind is Kind.TEXT and slot is None and file.content is not None:
        return Delivery(_decide_text(file, reader), make_reason(ReasonCode.READABLE_TEXT), mime_type="text/plain")
    reasons = [reason for obstacle in OBSTACLES if (reason := obstacle(file, reader, slot, position))]
    # Collect all reasons, because a conversion must resolve every one of them.
    if reasons or slot is None:
        return _decide_without_native(file, reader, position, slot, reasons)
    capability = next(name for name in slot.capabilities if reader.capabilities.has(name))
    # A file that fits its slot but cannot stay in a tool result is moved to the next user message.
    hoist = is_hoisted(slot, reader, position)
    fits = make_reason(ReasonCode.FITS, capability=capability, mime_type=file.mime_type)
    return Delivery(Outcome.HOISTED if hoist else Outcome.NATIVE, fits, slot, file.mime_type, hoist)


WEB_PAGES = frozenset({"text/html", "application/xhtml+xml"})

MARKUP_TYPES = WEB_PAGES | {"application/x-ipynb+json", "message/rfc822", "multipart/related"}
"""Text types with markup. The policy `extract` removes the markup, which can use more tokens than the text itself."""


ARCHIVES = frozenset(
    {"application/zip", "application/java-archive", "application/x-tar", "application/gzip"}
    | {"application/x-bzip2", "application/x-xz"}
)
"""Archive types. Under the policy `extract`, a list of their entries with names, sizes and dates is sent."""


def _decide_text(file: FilePart, reader: Reader) -> Outcome:
    rendered_types = MARKUP_TYPES - WEB_PAGES if reader.html_source else MARKUP_TYPES
    extracts = ContentPolicy.EXTRACT in reader.policies and file.mime_type in rendered_types
    return Outcome.EXTRACTED if extracts else Outcome.INLINED


def can_read(file: FilePart, reader: Reader) -> bool:
    """Return whether the reader would receive the file itself, not a description, if the bytes were available."""
    at_hand = replace(file, unreadable=None, content=file.content or (None if file.url else _AvailableContent()))
    # A description names the agents whose models accept a file of this type and size. It omits agents whose
    # models could receive only extracted text or page images, because the model that reads the description could
    # receive these, too.
    itself = without_describer(reader) if file.kind is Kind.IMAGE else replace(reader, policies=frozenset())
    return decide(at_hand, itself).form is not DeliveryForm.DESCRIBED


@value_class
class _AvailableContent:
    """Placeholder that makes `decide` treat the content as available. Its methods are never called."""

    def blob(self) -> Blob:
        raise UnreadableError("failed")

    def text(self) -> Text | None:
        return None

    def convert(self, _: ConvertTo) -> Converted | None:
        return None


def _decide_without_native(
    file: FilePart, reader: Reader, position: Position, slot: Slot | None, reasons: list[Reason]
) -> Delivery:
    reason = _pick_reason(reader, reasons)
    if slot is not None and ContentPolicy.CONVERT in reader.policies and _convertible(file, reasons):
        target = conversion_target(slot, reader, position)
        if target.mime_types:
            hoist = is_hoisted(slot, reader, position)
            return Delivery(Outcome.CONVERTED, reason, slot, target.mime_types[0], hoist, target)
    # Under `extract`, text takes precedence: `writing` draws the pages only if no text is found.
    image_slot = None if ContentPolicy.EXTRACT in reader.policies else page_slot(file, reader, position)
    if image_slot is not None:
        return Delivery(Outcome.CONVERTED, reason, image_slot, hoist=is_hoisted(image_slot, reader, position))
    return decide_text_form(file, reader, reason)


PAGED = frozenset({"application/pdf"})
"""Document types whose pages can be drawn as images."""

FRAMED = frozenset({"image/tiff", "image/gif", "image/apng", "image/png", "image/webp", "image/avif"})
"""Image types that can have several pages or frames."""


def page_slot(file: FilePart, reader: Reader, position: Position) -> Slot | None:
    """Return the slot for sending a document's pages as images, or None if this is not possible."""
    slot = reader.slots.get(Kind.IMAGE)
    if slot is None or ContentPolicy.CONVERT not in reader.policies or file.mime_type not in PAGED | FRAMED:
        return None
    types = conversion_target(slot, reader, position).mime_types
    if file.content is None or not types:
        return None
    # The size of a page image is unknown until it is drawn, so check only its type, role and count.
    page = FilePart(Kind.IMAGE, types[0], content=file.content)
    return None if any(obstacle(page, reader, slot, position) for obstacle in OBSTACLES) else slot


def decide_text_form(file: FilePart, reader: Reader, reason: Reason) -> Delivery:
    """Return a delivery as text: extracted text if the policy and the file type allow it, else a description."""
    has_words = file.kind is Kind.DOCUMENT or file.mime_type in ARCHIVES
    if ContentPolicy.EXTRACT in reader.policies and has_words and file.content is not None:
        return Delivery(Outcome.EXTRACTED, reason, mime_type="text/plain")
    return decide_description(file, reader, reason)


def decide_description(file: FilePart, reader: Reader, reason: Reason) -> Delivery:
    """Return a delivery without the file's content: a refusal, another model's description, or the file's metadata."""
    outcome = describe_or_refuse(reader, reason)
    describer = find_describer(file, reader, reason) if outcome is Outcome.DESCRIBED else ""
    return Delivery(outcome, reason, describer=describer)


CANDIDATE_INDEPENDENT = frozenset(
    {ReasonCode.UNREADABLE, ReasonCode.ROLE, ReasonCode.EMPTY, ReasonCode.LOCKED, ReasonCode.DAMAGED}
)
"""Reasons that apply equally to every candidate model, so trying the next candidate would not help."""


def _pick_reason(reader: Reader, reasons: list[Reason]) -> Reason:
    # Under `native_only`, prefer a reason that applies to every candidate. Otherwise, every candidate would be skipped.
    hopeless = [reason for reason in reasons if reason.code in CANDIDATE_INDEPENDENT]
    return hopeless[0] if hopeless and ContentPolicy.NATIVE_ONLY in reader.policies else reasons[0]


def describe_or_refuse(reader: Reader, reason: Reason) -> Outcome:
    """Return REFUSED under the policy `native_only` if another candidate might accept the file, else DESCRIBED."""
    strict = ContentPolicy.NATIVE_ONLY in reader.policies and reason.code not in CANDIDATE_INDEPENDENT
    return Outcome.REFUSED if strict else Outcome.DESCRIBED


FIXED_BY_CONVERSION = frozenset(
    {
        ReasonCode.TYPE,
        ReasonCode.TOO_LARGE,
        ReasonCode.TOO_WIDE,
        ReasonCode.TOO_MUCH_OF_A_KIND,
        ReasonCode.REQUEST_FULL,
    }
)
"""Obstacles that may disappear if an image is converted to another type or a smaller size. The converted image is
checked again."""


CONVERTIBLE = frozenset(
    f"image/{name}"
    for name in (
        *("jpeg", "png", "apng", "gif", "webp", "bmp", "tiff", "avif", "heic", "heif", "jp2", "jpx", "qoi", "icns"),
        *("x-icon", "vnd.microsoft.icon", "vnd.adobe.photoshop", "x-tga", "x-pcx"),
        *("x-portable-pixmap", "x-portable-graymap", "x-portable-bitmap", "x-portable-anymap", "x-msp"),
    )
)
"""Image types that can be decoded (HEIC only if the optional dependency `heic` is installed). Camera raw formats are
not included."""


def _convertible(file: FilePart, reasons: list[Reason]) -> bool:
    curable = all(reason.code in FIXED_BY_CONVERSION for reason in reasons)
    return curable and file.mime_type in CONVERTIBLE and file.content is not None


IMAGE_TARGETS = ("image/png", "image/jpeg", "image/webp")
"""Target types of image conversions, in order of preference."""


def conversion_target(slot: Slot, reader: Reader, position: Position) -> ConvertTo:
    in_tool_result = tool_result_slot(slot, reader, position)
    types = tuple(mime_type for mime_type in IMAGE_TARGETS if slot.carries(mime_type, in_tool_result=in_tool_result))
    return ConvertTo(types, slot.max_bytes, slot.side(position.total))


def is_hoisted(slot: Slot, reader: Reader, position: Position) -> bool:
    """Return whether a file for this slot must be moved from a tool result to the next user message."""
    return position.role is Role.TOOL and not tool_result_slot(slot, reader, position)
