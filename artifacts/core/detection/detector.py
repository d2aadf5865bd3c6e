"""Detect a file's type, kind and encoding, and record the reasons (ABR-1.1 to 1.5, ABR-8.2, 8.3).

The metadata determines the type unless the bytes prove another one. There are three kinds of proof: a signature
followed by a valid structure; clean text, if the declared type is media, an archive or an office document; and bytes
that are not text, if the declared type is text. Each finding is stored as evidence, so that a page can show
"declared image/png, bytes say application/pdf".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from artifacts.core.detection import encodings, signatures
from artifacts.core.detection.containers import (
    FAMILY_TYPES,
    INSPECT,
    LOCKED_PACKAGE,
    OFFICE_PROGRAMS,
    WORKS,
    ZIP_PACKAGES,
)
from artifacts.core.detection.encodings import DetectedText, Proof
from artifacts.core.detection.evidence import Detection, Evidence, Opinion, ask_opinion
from artifacts.core.detection.kinds import OCTET_STREAM, PLAIN_TEXT, clean_mime, is_binary_mime, is_text_mime, mime_kind
from artifacts.core.detection.kinds import filename_mime as named_type
from artifacts.core.detection.likelihood import SHORT, is_word_like
from artifacts.core.detection.signatures import HEAD, Match
from artifacts.core.detection.text_extensions import PAGE_SOURCE_TYPES
from artifacts.core.store import BLOCK, ReadAt, read_blocks, read_slices
from capabilities.core.vocabulary import Kind

log = logging.getLogger(__name__)


SAME_EXTENSIONS = (
    (WORKS, "application/msword"),
    (WORKS, "application/vnd.lotus-1-2-3"),
    ("image/x-msp", "application/x-ole-storage"),
)
"""Pairs of types that share an extension: `.wps`, `.wks`, and `.msp` (Paint images and Windows patches)."""


@dataclass(frozen=True, slots=True)
class _ByteFindings:
    match: Match | None = None
    text: DetectedText | None = None
    opinion: str | None = None
    evidence: tuple[Evidence, ...] = ()


_FAILED = _ByteFindings(evidence=(Evidence("bytes", "", "failed"),))


@dataclass(frozen=True, slots=True)
class BinaryDetector:
    """Detects a file's type.

    `sniff` and `guess_encoding` call third-party libraries, whose results never count as proof. `prefer` is the
    language whose legacy encoding is chosen if several encodings fit (`zh`: GB18030).
    """

    sniff: Opinion | None = None
    guess_encoding: Opinion | None = None
    prefer: str = "zh"

    def detect(
        self,
        head: bytes,
        size: int | None = None,
        declared_mime: str | None = None,
        filename: str | None = None,
        *,
        read_at: ReadAt | None = None,
        encoding: str | None = None,
    ) -> Detection:
        """Detect the type of a file from its first bytes.

        `size` is the file's size in bytes, or None if `head` is the whole file. Without `read_at`, nothing after the
        head is examined: neither a zip directory nor later text. `encoding` is the encoding that the uploader declared.
        This method never raises an exception: if reading or examining the bytes fails, the type is taken from the
        metadata (ABR-8.3).
        """
        declared, type_by_name = clean_mime(declared_mime), named_type(filename)
        claimed = type_by_name if declared == "text/html" and type_by_name in PAGE_SOURCE_TYPES else declared
        claimed = claimed or type_by_name
        size = max(size or 0, len(head))
        try:
            findings = self._inspect(head, size, read_at, claimed, encoding)
        except OSError as error:
            log.warning("reading a file of %d bytes failed, so its type is as declared: %s", size, error)
            findings = _FAILED
        except Exception:  # A bug in the detection must not make an upload fail (ABR-8.3).
            log.exception("detection failed on a file of %d bytes, so its type is as declared", size)
            findings = _FAILED
        by_declaration = Evidence("declared", declared or "", "declared" if declared else "undeclared")
        by_name = (Evidence("extension", type_by_name, "extension"),) if type_by_name else ()
        return _verdict(findings, claimed, declared, type_by_name, (by_declaration, *by_name, *findings.evidence))

    def find_encoding(self, size: int, read_at: ReadAt) -> DetectedText | None:
        """Return the encoding of a file that is known to be text, or None if no encoding decodes all bytes."""
        return self._text(read_at(0, HEAD), size, read_at, None) if size else None

    def detect_binary_type(self, data: bytes, mime_type: str | None = None, filename: str | None = None) -> Kind:
        """Return `image`, `audio`, `video`, `document` or `other`. For text, return `other`."""
        kind = self.detect(data, None, mime_type, filename).kind
        return Kind.OTHER if kind is Kind.TEXT else kind

    def _inspect(
        self, head: bytes, size: int, read_at: ReadAt | None, claimed: str | None, declared: str | None
    ) -> _ByteFindings:
        # The claimed type is used only to distinguish types whose files start with the same bytes.
        if not size:
            return _ByteFindings(evidence=(Evidence("bytes", "", "empty"),))
        match = signatures.match(head)
        notes: tuple[Evidence, ...] = ()
        # Text can begin with letters such as "BM" or "ID3", which are also signatures.
        if match and not match.textual and _is_text(head, size):
            match = None
        if match:
            match, notes = _inspect_container(match, size, read_at or read_slices(head), claimed)
            if match.proves:
                return _ByteFindings(match, evidence=notes)
        text = self._text(head, size, read_at, declared)
        # Almost any three bytes are valid in some legacy encoding, so a short file without a claimed type must also
        # look like words.
        if text and (claimed or size >= SHORT or _is_readable(head, text)):
            markup_type = signatures.text_type(head)
            by_markup = (Evidence("markup", markup_type, "markup"),) if markup_type else ()
            by_decoding = Evidence("text", text.encoding, "text" if text.certain else "text_guessed")
            return _ByteFindings(match, text, evidence=(*notes, by_decoding, *by_markup))
        opinion = None if match else clean_mime(ask_opinion(self.sniff, head[:HEAD]))
        by_libmagic = (Evidence("libmagic", opinion, "libmagic"),) if opinion else ()
        return _ByteFindings(match, None, opinion, (*notes, Evidence("text", "", "no_text"), *by_libmagic))

    def _text(self, head: bytes, size: int, read_at: ReadAt | None, declared: str | None) -> DetectedText | None:
        # Without `read_at`, only the first bytes can be examined.
        if read_at is None and size > len(head):
            return self._find(head[:HEAD], False, declared)
        read_at = read_at or read_slices(head)
        text = self._find(head[:HEAD], size <= HEAD, declared)
        if text is None or size <= HEAD or encodings.is_clean(read_blocks(read_at, size), text.encoding):
            return text
        # The first bytes may lack characters that only a superset of the encoding has, so check the whole file.
        for candidate in encodings.widen(text):
            if encodings.is_clean(read_blocks(read_at, size), candidate.encoding):
                return candidate
        if text.trial == "utf-8" and encodings.is_cut_off(read_blocks(read_at, size)):
            return DetectedText("utf-8", text.proof, "cut")
        if found := encodings.accept_invalid_bytes(text, read_blocks(read_at, size)):
            return found
        if text.trial != "utf-8" or not head[:HEAD].isascii():
            return None
        later_text = self._find(_first_foreign_line(read_at, size), False, declared)
        return (
            later_text if later_text and encodings.is_clean(read_blocks(read_at, size), later_text.encoding) else None
        )

    def _find(self, sample: bytes, whole: bool, declared: str | None) -> DetectedText | None:
        guess = partial(ask_opinion, self.guess_encoding)
        return encodings.detect_text(sample, whole=whole, declared=declared, prefer=self.prefer, guess=guess)


def _first_foreign_line(read_at: ReadAt, size: int) -> bytes:
    # A log can contain megabytes of plain ASCII before the first Chinese character.
    for offset in range(0, size, BLOCK):
        block = read_at(offset, BLOCK)
        if not block.isascii():
            ascii_part = len(block) - len(block.lstrip(bytes(range(0x80))))
            return read_at(offset + block.rfind(b"\n", 0, ascii_part) + 1, HEAD)
    return b""


def _is_text(head: bytes, size: int) -> bool:
    # Four letters at the beginning of clean UTF-8 text are a word rather than a signature.
    return encodings.is_clean((head[:4096],), "utf-8", whole=size <= 4096)


def _is_readable(head: bytes, text: DetectedText) -> bool:
    return text.proof is Proof.STRONG or is_word_like("".join(encodings.decode_blocks((head,), text.encoding)))


def _inspect_container(
    match: Match, size: int, read_at: ReadAt, claimed: str | None
) -> tuple[Match, tuple[Evidence, ...]]:
    notes = (Evidence("signature", match.mime, "signature" if match.proves else "signature_hint"),)
    inner = INSPECT[match.family](read_at, size) if match.family else None
    if inner:
        also = (claimed,) if claimed and _is_alike(claimed, inner) else ()
        return Match(mime=inner, proves=match.proves, also=also), (
            *notes,
            Evidence("container", inner, "container"),
        )
    return match, notes


def _is_alike(claimed: str, inner: str) -> bool:
    # A template has the same parts as a document, and a macro-enabled file may contain no macro. Only the claimed type
    # distinguishes them.
    if inner == "application/zip":
        return claimed.endswith(("+zip", "kmz")) or claimed in ZIP_PACKAGES
    if inner == LOCKED_PACKAGE:
        return any(claimed.startswith(names) for names in OFFICE_PROGRAMS)
    if "binary" in claimed + inner or ("macroenabled" in inner and "macroenabled" not in claimed):
        return False
    return any(claimed.startswith(names) and inner.startswith(names) for names in OFFICE_PROGRAMS)


def _shares_bytes_with(mime: str, match: Match) -> bool:
    # These types start with the same bytes, so the claimed type cannot be disproved.
    return mime in match.also or mime.startswith(FAMILY_TYPES.get(match.family, ("\0",)))


def _verdict(
    findings: _ByteFindings,
    claimed: str | None,
    declared: str | None,
    type_by_name: str | None,
    notes: tuple[Evidence, ...],
) -> Detection:
    # There are three cases: the bytes prove a binary type, the bytes are text, or the bytes prove nothing.
    if findings.match and findings.match.proves:
        mime = claimed if claimed and _shares_bytes_with(claimed, findings.match) else findings.match.mime
        return _trust_bytes(mime, claimed, declared, findings.match.mime, notes)
    if findings.text and _is_text_accepted(findings.text, claimed, findings.match):
        return _text(findings, claimed, declared, type_by_name, notes)
    return _trust_metadata(findings, claimed, declared, type_by_name, notes)


def _trust_bytes(
    mime: str, claimed: str | None, declared: str | None, detected: str, notes: tuple[Evidence, ...]
) -> Detection:
    reason = "bytes" if claimed is None else "agrees" if claimed == mime else "overruled"
    mismatch = reason == "overruled" and (declared is not None or not _share_an_extension(claimed, mime))
    return Detection(
        mime_type=mime,
        kind=mime_kind(mime),
        is_binary=True,
        declared_mime_type=declared,
        detected_mime_type=detected,
        mismatch=mismatch,
        evidence=(*notes, Evidence("verdict", mime, reason)),
    )


def _share_an_extension(claimed: str | None, mime: str) -> bool:
    # Do not report a mismatch for `.mp4`, which may contain audio or video, or for `.wps`, which both Kingsoft Office
    # and Works use.
    families = (*(FAMILY_TYPES[name] for name in ("mp4", "ebml", "ogg", "asf")), *SAME_EXTENSIONS)
    return any((claimed or "").startswith(family) and mime.startswith(family) for family in families)


def _is_text_accepted(text: DetectedText, claimed: str | None, match: Match | None) -> bool:
    # Strong proof overrides any claimed type. Weak proof, such as a legacy encoding, counts if no type is claimed. It
    # also suffices if text is claimed, even if the first word is a signature, such as FORM or MAC.
    if text.proof is Proof.STRONG:
        return True
    return match is None if claimed is None else is_text_mime(claimed)


def _text(
    findings: _ByteFindings,
    claimed: str | None,
    declared: str | None,
    type_by_name: str | None,
    notes: tuple[Evidence, ...],
) -> Detection:
    # Use the claimed type, unless files of that type are never text.
    encoding, certain = (findings.text.encoding, findings.text.certain) if findings.text else ("utf-8", True)
    is_overruled = claimed is not None and is_binary_mime(claimed)
    markup_type = next((item.says for item in findings.evidence if item.step == "markup"), None)
    text_type_by_name = type_by_name if type_by_name and is_text_mime(type_by_name) else None
    mime = (text_type_by_name or markup_type or PLAIN_TEXT) if is_overruled or claimed is None else claimed
    reason = "overruled" if is_overruled else "bytes" if claimed is None else "kept"
    final = Evidence("verdict", mime, reason)
    return Detection(
        mime_type=mime,
        kind=Kind.TEXT,
        is_binary=False,
        encoding=encoding,
        declared_mime_type=declared,
        detected_mime_type=markup_type or PLAIN_TEXT,
        mismatch=is_overruled,
        evidence=(*notes, final),
        encoding_certain=certain,
    )


def _trust_metadata(
    findings: _ByteFindings,
    claimed: str | None,
    declared: str | None,
    type_by_name: str | None,
    notes: tuple[Evidence, ...],
) -> Detection:
    # The bytes prove nothing, so use the metadata. However, bytes that are not text cannot have a text type.
    hint = findings.match.mime if findings.match else findings.opinion
    hint = None if hint and is_text_mime(hint) else hint
    reasons = {item.reason for item in findings.evidence}
    if "empty" in reasons and (claimed is None or is_text_mime(claimed)):
        mime = claimed or PLAIN_TEXT
        final = Evidence("verdict", mime, "kept" if claimed else "unknown")
        return Detection(
            mime_type=mime,
            kind=Kind.TEXT,
            is_binary=False,
            encoding="utf-8",
            declared_mime_type=declared,
            evidence=(*notes, final),
        )
    if "failed" in reasons and (claimed is None or is_text_mime(claimed)):
        return _unknown(declared, notes)
    if claimed is not None and not is_text_mime(claimed):
        final = Evidence("verdict", claimed, "kept")
        return Detection(
            mime_type=claimed,
            kind=mime_kind(claimed),
            is_binary=True,
            declared_mime_type=declared,
            detected_mime_type=hint,
            evidence=(*notes, final),
        )
    binary_type_by_name = type_by_name if type_by_name and not is_text_mime(type_by_name) else None
    mime = binary_type_by_name or hint or OCTET_STREAM
    reason = "overruled" if claimed else "bytes" if hint else "unknown"
    final = Evidence("verdict", mime, reason)
    return Detection(
        mime_type=mime,
        kind=mime_kind(mime),
        is_binary=True,
        declared_mime_type=declared,
        detected_mime_type=hint,
        mismatch=claimed is not None,
        evidence=(*notes, final),
    )


def _unknown(declared: str | None, notes: tuple[Evidence, ...]) -> Detection:
    final = Evidence("verdict", OCTET_STREAM, "unknown")
    return Detection(
        mime_type=OCTET_STREAM,
        kind=Kind.OTHER,
        is_binary=True,
        declared_mime_type=declared,
        evidence=(*notes, final),
    )
