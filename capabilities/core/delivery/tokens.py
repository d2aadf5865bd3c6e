"""Estimate the token counts of files and text offline. The provider's count may differ.

The formulas come from the vendors' documentation (2026-09, checked 2026-11-20), and `FAMILIES` maps models to them. If
a model's formula is unknown, the result is None, because a made-up number is worse than none.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from capabilities.core.delivery.decision import Outcome
from capabilities.core.message import ChatRequest, FilePart, TextPart
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind

if TYPE_CHECKING:
    # Import only for type checking, because a run-time import would be circular.
    from capabilities.core.delivery.adaptation import Adapted, PartDelivery

ImageCount = Callable[[int, int], int]
"""Function that returns an image's token count, given its width and height in pixels."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated token count, and the counting rule used. The provider's own count may differ."""

    tokens: int
    rule: str


@dataclass(frozen=True, slots=True)
class Family:
    """A model family's tokens per image, per PDF page, and per second of audio or video, each None if unknown."""

    rule: str
    image: ImageCount | None = None
    page: int | None = None
    audio_second: float | None = None
    video_second: float | None = None


def _cells(width: int, height: int, cell: int) -> int:
    return math.ceil(width / cell) * math.ceil(height / cell)


def _scale_down(width: int, height: int, cell: int, edge: int, budget: int) -> tuple[int, int]:
    # Find the largest size with the same aspect ratio that has at most `budget` cells and a long edge, padded to whole
    # cells, of at most `edge` pixels.
    long, short = max(width, height), min(width, height)

    def at(side: int) -> tuple[int, int]:
        return side, max(1, round(short * side / long))

    def fits(side: int) -> bool:
        return math.ceil(side / cell) * cell <= edge and _cells(*at(side), cell) <= budget

    # Find the maximum long side by binary search.
    low, high = 1, long
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return at(low)


def claude_image(edge: int, budget: int) -> ImageCount:
    # Claude: one token per 28 x 28 pixels, after scaling down to the maximum edge and token budget of the model's tier.
    return lambda width, height: _cells(*_scale_down(width, height, 28, edge, budget), 28)


def openai_tiles(base: int, tile: int) -> ImageCount:
    def count(width: int, height: int) -> int:
        # Scale down to fit into 2048 x 2048 pixels, and then to a short side of at most 768.
        scale = min(1.0, 2048 / max(width, height))
        scale *= min(1.0, 768 / (min(width, height) * scale))
        return base + tile * _cells(max(1, round(width * scale)), max(1, round(height * scale)), 512)

    return count


def openai_patches(factor: float, edge: int, budget: int) -> ImageCount:
    # OpenAI: the number of 32 x 32 pixel patches, after scaling down to the maximum edge and patch budget, times the
    # model's factor.
    return lambda width, height: round(_cells(*_scale_down(width, height, 32, edge, budget), 32) * factor)


def gemini_tiles(width: int, height: int) -> int:
    # Up to Gemini 2.5: 258 tokens for a small image, else 258 tokens per tile of 768 pixels.
    return 258 if max(width, height) <= 384 else 258 * _cells(width, height, 768)


def qwen_image(width: int, height: int) -> int:
    # Qwen-VL: one token per 28 x 28 pixels, at least 4.
    return max(4, _cells(width, height, 28))


_CLAUDE = Family(translatable("claude, 28-pixel cells, standard tier"), claude_image(1568, 1568), page=3800)
_CLAUDE_HIGH = Family(translatable("claude, 28-pixel cells, high-resolution tier"), claude_image(2576, 4784), page=7000)
_GEMINI_3 = Family(
    translatable("gemini 3, flat per image"), lambda _, __: 1120, page=560, audio_second=32, video_second=70
)
_GEMINI = Family(translatable("gemini, 768-pixel tiles"), gemini_tiles, page=258, audio_second=32, video_second=263)
_QWEN = Family(translatable("qwen-vl, 28-pixel cells"), qwen_image)


def _patches(factor: float, edge: int = 2048, budget: int = 2500) -> Family:
    rule = translatable("openai, 32-pixel patches x %(factor)s", factor=f"{factor:g}")
    return Family(rule, openai_patches(factor, edge, budget))


def _tiles(base: int, tile: int) -> Family:
    return Family(translatable("openai, %(base)s + %(tile)s a tile", base=base, tile=tile), openai_tiles(base, tile))


FAMILIES: tuple[tuple[str, Family], ...] = (
    ("claude-opus-4[-.][7-9]*", _CLAUDE_HIGH),
    ("claude-*-4*", _CLAUDE),
    ("claude-3*", _CLAUDE),
    ("claude-*-5*", _CLAUDE_HIGH),
    ("claude*", _CLAUDE),
    ("gpt-4o-mini*", _tiles(2833, 5667)),
    ("gpt-4o*", _tiles(85, 170)),
    ("gpt-4.1-mini*", _patches(1.62, budget=1536)),
    ("gpt-4.1-nano*", _patches(2.46, budget=1536)),
    ("gpt-4.1*", _tiles(85, 170)),
    ("gpt-5-nano*", _patches(1.5, budget=1536)),
    ("gpt-5.[2-9]*", _patches(1.2)),
    ("gpt-6*", _patches(1.2)),
    ("gpt-5*", _tiles(70, 140)),
    ("o4-mini*", _patches(1.72, budget=1536)),
    ("o1*", _tiles(75, 150)),
    ("o3*", _tiles(75, 150)),
    ("gemini-[3-9]*", _GEMINI_3),
    ("gemini*", _GEMINI),
    ("qwen*vl*", _QWEN),
)
"""Model families, found by patterns for model names. The first match is used, and only the part of a name after its
last slash is matched."""


def find_family(model: str) -> Family | None:
    name = model.rsplit("/", 1)[-1].lower()
    return next((family for pattern, family in FAMILIES if fnmatchcase(name, pattern)), None)


def text_tokens(text: str) -> Estimate:
    """Estimate a text's token count: 1 per Chinese, Japanese or Korean character, 0.25 per other character."""
    # Look up the width of each distinct character only once.
    counts = {} if text.isascii() else Counter(text)
    wide_count = sum(count for char, count in counts.items() if unicodedata.east_asian_width(char) in "WF")
    rule = translatable("1 a CJK character, 0.25 a character otherwise")
    return Estimate(math.ceil(wide_count + (len(text) - wide_count) / 4), rule)


def file_tokens(model: str, file: FilePart) -> Estimate | None:
    """Estimate how many tokens a natively sent file uses, or return None if this cannot be estimated."""
    family = find_family(model)
    count = _count(family, file) if family else None
    return Estimate(count, family.rule) if family and count is not None else None


def _count(family: Family, file: FilePart) -> int | None:
    if file.kind is Kind.IMAGE:
        return family.image(file.width, file.height) if family.image and file.width and file.height else None
    if file.kind is Kind.DOCUMENT:
        return file.pages * family.page if file.pages is not None and family.page is not None else None
    rate = {Kind.AUDIO: family.audio_second, Kind.VIDEO: family.video_second}.get(file.kind)
    return math.ceil(file.seconds * rate) if file.seconds is not None and rate is not None else None


# The remaining functions estimate the tokens in an entire request and in each of its files.


def estimate_request(adapted: Adapted, model: str) -> int:
    """Estimate the tokens in an adapted request. Files that cannot be estimated count as zero."""
    media = (estimate_delivery(delivery, model) for delivery in adapted.deliveries if delivery.text is None)
    return _sum_text_tokens(adapted.chat) + sum(estimate.tokens for estimate in media if estimate)


def estimate_chat(chat: ChatRequest, model: str) -> int:
    files = (part for message in chat.messages for part in message.parts if isinstance(part, FilePart))
    return _sum_text_tokens(chat) + sum(estimate.tokens for estimate in _known_estimates(files, model))


def estimate_delivery(
    delivery: PartDelivery, model: str, estimate_text: Callable[[str], Estimate] = text_tokens
) -> Estimate | None:
    """Estimate how many tokens a file uses as delivered, or return None if this cannot be estimated."""
    if delivery.text is not None:
        return estimate_text(delivery.text)
    if delivery.delivery.outcome is not Outcome.CONVERTED:
        return file_tokens(model, delivery.file)
    images = [FilePart(native.kind, width=native.width, height=native.height) for native in delivery.natives]
    # If a page has no estimate, return None for the file, because a partial sum would look like a total.
    estimates = _known_estimates(images, model)
    return (
        Estimate(sum(estimate.tokens for estimate in estimates), estimates[0].rule)
        if estimates and len(estimates) == len(images)
        else None
    )


def _known_estimates(files: Iterable[FilePart], model: str) -> list[Estimate]:
    return [estimate for estimate in (file_tokens(model, file) for file in files) if estimate]


def _sum_text_tokens(chat: ChatRequest) -> int:
    texts = [part.text for message in chat.messages for part in message.parts if isinstance(part, TextPart)]
    texts += [json.dumps(asdict(tool), default=str, ensure_ascii=False) for tool in chat.tools]
    texts += [call.arguments for message in chat.messages for call in message.tool_calls]
    return sum(text_tokens(text).tokens for text in texts)
