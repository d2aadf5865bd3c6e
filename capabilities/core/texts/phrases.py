"""Chinese and English phrases for text that models read, and the escaping of untrusted names in that text.

Programs parse this text, so a name must stay on its line. `escape_name` replaces characters that could break or hide a
line with `\\u{hex}`, and `unescape_name` reverses this. Ordinary names stay unchanged, even in Chinese or with quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

UNITS = ("KB", "MB", "GB", "TB", "PB")
JOINERS = "\u200c\u200d"
"""Invisible characters that occur in Persian and Indic words and in emoji. They cannot break or reorder a line."""

HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of hidden characters: controls, format and bidi marks, lone surrogates, line and paragraph
separators."""

ESCAPE = re.compile(r"\\u\{([0-9a-f]{1,6})\}")


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases in one language. The keys of `nouns` and `skills` are content types (image, audio, video, file)."""

    received: str
    type: str
    filename: str
    reference: str
    link: str
    size: str
    mime_type: str
    unreadable_status: str
    flaws: Mapping[str, str]
    cannot: str
    forward: str
    suggested: str
    able: str
    others: str
    none_capable: str
    none_configured: str
    nouns: Mapping[str, str]
    skills: Mapping[str, str]
    unreadable: str
    short_size: str
    cannot_read: str
    failed: str
    error: str
    check: str
    invalid_bytes: str
    truncated: str
    tail: str
    call: str
    whole: str
    call_of: str
    lead: str
    treatment: str
    extracted: str
    converted: str
    drawn: str
    frames: str
    only_frame: str
    description_slot: str
    nameless: str
    unknown: str

    def around_count(self, content_type: str) -> tuple[str, str]:
        """Return the text before and after the number of other agents that can read the content."""
        capability = "vision" if content_type == "image" else content_type
        before, _, after = self.others.format(count="\0", capability=capability).partition("\0")
        return before, after

    def forward_to(self, content_type: str) -> str:
        return self.forward.format(noun=self.nouns[content_type], skill=self.skills[content_type])


ZH = Phrases(
    received="【收到附件】",
    type="类型: ",
    filename="文件名: ",
    reference="工件ID: ",
    link="链接: ",
    size="文件大小: ",
    mime_type="MIME类型: ",
    unreadable_status="状态: 无法读取文件内容，可稍后凭上述引用重试",
    flaws=MappingProxyType({"locked": "状态: 文件已加密，需要密码才能打开", "damaged": "状态: 文件已损坏，无法打开"}),
    cannot="当前模型不支持直接处理此类型内容。",
    forward="如需处理此{noun}，可以使用 send_message 工具将其转发给具备{skill}能力的智能体。",
    suggested="建议转发给: ",
    able="可处理此内容的智能体: ",
    others="另有 {count} 个智能体也可处理，可通过 GET /api/v1/agents?capability={capability} 列出。",
    none_capable="目前没有智能体能够处理此类内容。",
    none_configured="没有已配置的智能体能够处理此类内容。",
    nouns=MappingProxyType({"image": "图片", "audio": "音频", "video": "视频", "file": "文件"}),
    skills=MappingProxyType({"image": "视觉理解", "audio": "音频理解", "video": "视频理解", "file": "文件阅读"}),
    unreadable="[无法读取] ",
    short_size="大小: ",
    cannot_read="当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。",
    failed="[文件处理失败: ",
    error="错误: 无法读取文件内容",
    check="请检查文件是否损坏",
    invalid_bytes="[{count} 个字节无法按 {encoding} 解码，以 U+FFFD 代替]",
    truncated="[已截断: 共 {total} 字符，此处为 {start}–{end}",
    tail=" 与末尾 {tail}",
    call="；继续读取请调用 get_artifact(ref, offset={offset})",
    whole="；全文见 {reference}",
    call_of="，ref 为 {reference}",
    lead="工件内容 (",
    treatment="处理方式: ",
    extracted="已提取为文本，原为 {type}",
    converted="已转换为 {mime_type}，{width}×{height} 像素，原为 {type}",
    drawn="第 {first}–{last} 页（共 {total} 页）已转换为图片，依次如下，原为 {type}",
    frames="第 {numbers} 帧（共 {total} 帧）已转换为图片，依次如下，原为 {type}",
    only_frame="；仅含第 1 帧（页），共 {total} 帧（页）",
    description_slot="[此处为 {describer} 对该文件的描述，尚未生成]",
    nameless="未知文件",
    unknown="未知",
)

EN = Phrases(
    received="[Attachment received]",
    type="Type: ",
    filename="Filename: ",
    reference="Artifact ID: ",
    link="URL: ",
    size="File size: ",
    mime_type="MIME type: ",
    unreadable_status="Status: the file's content could not be read; try again later by the reference above",
    flaws=MappingProxyType(
        {
            "locked": "Status: the file is protected by a password",
            "damaged": "Status: the file is damaged and cannot be opened",
        }
    ),
    cannot="The current model cannot process this type of content directly.",
    forward=(
        "To have this {noun} handled, forward it with the send_message tool to an agent that has {skill} capability."
    ),
    suggested="Suggested agents: ",
    able="Agents that can process it: ",
    others="{count} more agents can; GET /api/v1/agents?capability={capability} lists them.",
    none_capable="No agent can currently process this type of content.",
    none_configured="No configured agent can process this type of content.",
    nouns=MappingProxyType({"image": "image", "audio": "audio", "video": "video", "file": "file"}),
    skills=MappingProxyType({"image": "vision", "audio": "audio", "video": "video", "file": "file"}),
    unreadable="[Unreadable] ",
    short_size="Size: ",
    cannot_read=(
        "The current model cannot read this kind of file. "
        "Consider creating an agent with the required capability to help."
    ),
    failed="[File could not be processed: ",
    error="Error: the file's content could not be read",
    check="Please check whether the file is damaged",
    invalid_bytes="[Bytes that are not valid {encoding}, shown as U+FFFD: {count}]",
    truncated="[Truncated: {total} characters, showing {start}–{end}",
    tail=" and the last {tail}",
    call="; to read on call get_artifact(ref, offset={offset})",
    whole="; the whole is {reference}",
    call_of=", where ref is {reference}",
    lead="Artifact content (",
    treatment="Done: ",
    extracted="extracted as text from: {type}",
    converted="converted to {mime_type}, {width}×{height} pixels, from: {type}",
    drawn="pages {first}–{last} of {total} follow as images, in order, from: {type}",
    frames="frames {numbers} of {total} follow as images, in order, from: {type}",
    only_frame="; only page or frame 1 of {total}",
    description_slot="[Here {describer} describes the file; it was not asked yet]",
    nameless="unknown file",
    unknown="unknown",
)

LANGUAGES: Mapping[str, Phrases] = MappingProxyType({"zh": ZH, "en": EN})


def nearest_language(language: str | None) -> str:
    """Return `zh` for every language tag for Chinese (zh-CN, zh_Hant, ZH), and `en` for other tags and None."""
    primary = re.split(r"[-_]", language or "", maxsplit=1)[0].strip().lower()
    return primary if primary in LANGUAGES else "en"


def phrases_for(language: str | None) -> Phrases:
    return LANGUAGES[nearest_language(language)]


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible, or could break or reorder a line."""
    return unicodedata.category(character) in HIDDEN_CATEGORIES and character not in JOINERS


def escape_name(name: str, further: str = "") -> str:
    r"""Return the name as a single line. Hidden characters and those in `further` become `\u{hex}`.

    Different names always have different results (see `unescape_name`).
    """
    # Most names need no escaping.
    if name.isascii() and name.isprintable() and "\\" not in name and not any(mark in name for mark in further):
        return name
    escapes = {ord(mark): f"\\u{{{ord(mark):x}}}" for mark in set(name) if mark in further or is_hidden(mark)}
    # If part of the name already looks escaped, escape it once more, so that `unescape_name` returns the original name.
    return "\\u{5c}u{".join(part.translate(escapes) for part in name.split("\\u{"))


def unescape_name(text: str) -> str:
    """Reverse `escape_name`. Return other text unchanged."""

    def unescape(match: re.Match[str]) -> str:
        code = int(match[1], 16)
        return chr(code) if code <= 0x10FFFF else match[0]

    return ESCAPE.sub(unescape, text)


def human_size(size: int) -> str:
    """Return a size in bytes in common notation: `1023 B`, `1.0 KB`, `1.2 MB`."""
    if size < 1024:
        return f"{size} B"
    tenths = [(20 * size + 1024**power) // (2 * 1024**power) for power in range(1, len(UNITS) + 1)]
    # Write `1.0 MB` instead of `1024.0 KB`.
    power = next((index for index, count in enumerate(tenths) if count < 10240), len(UNITS) - 1)
    return f"{tenths[power] // 10}.{tenths[power] % 10} {UNITS[power]}"
