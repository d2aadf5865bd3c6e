"""Read and write reasoning for OpenAI-compatible hosts: `reasoning_details` and Google's `extra_content`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from capabilities.core.protocols.answer_fields import non_empty_text
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm

# The message field in which OpenRouter sends reasoning.
DETAILS = "reasoning_details"
EXTRA = "extra_content"
# The `dialect` of a reasoning block for the signature in a message's `extra_content`.
GOOGLE = "google-extra-content"
# The placeholder that Google documents for calls by another vendor's model, which have no signature.
SKIP_VALIDATION = "skip_thought_signature_validator"
# Maps each form of reasoning to its type in OpenRouter's format, and to the field that contains it.
TYPES: Mapping[ThoughtForm, tuple[str, str]] = MappingProxyType(
    {
        ThoughtForm.TEXT: ("reasoning.text", "text"),
        ThoughtForm.SUMMARY: ("reasoning.summary", "summary"),
        ThoughtForm.ENCRYPTED: ("reasoning.encrypted", "data"),
    }
)
FORMS: Mapping[str, ThoughtForm] = MappingProxyType({type_: form for form, (type_, _) in TYPES.items()})


def message_thoughts(message: Mapping[str, Any]) -> tuple[ReasoningBlock, ...]:
    """Return the reasoning in an answer's message, which must be sent back to the same model."""
    return (*parse_thoughts(message.get(DETAILS)), *message_thought(message))


def message_thought(message: Mapping[str, Any]) -> tuple[ReasoningBlock, ...]:
    """Return Google's signature in a message or delta as a reasoning block."""
    signature = parse_signature(message)
    return (ReasoningBlock(ThoughtForm.ENCRYPTED, "", signature, dialect=GOOGLE),) if signature else ()


def message_fields(thoughts: Sequence[ReasoningBlock], first: int = 0) -> dict[str, Any]:
    """Return reasoning blocks as fields of an assistant message. `first` is the index of the first block."""
    detailed = [thought for thought in thoughts if thought.dialect != GOOGLE]
    signature = next((thought.proof for thought in thoughts if thought.dialect == GOOGLE), None)
    return ({DETAILS: build_details(detailed, first)} if detailed else {}) | signature_field(signature)


def build_details(thoughts: Iterable[ReasoningBlock], first: int = 0) -> list[dict[str, Any]]:
    return [_detail(thought, index) for index, thought in enumerate(thoughts, first)]


def _detail(thought: ReasoningBlock, index: int) -> dict[str, Any]:
    type_, field = TYPES[thought.form]
    out: dict[str, Any] = {"type": type_, field: thought.text}
    if thought.form is ThoughtForm.ENCRYPTED:
        out[field] = thought.proof
    elif thought.proof is not None:
        out["signature"] = thought.proof
    identity = {"id": thought.id} if thought.id else {}
    return {**out, **identity, "format": thought.dialect or "unknown", "index": index}


def parse_thoughts(value: Any) -> tuple[ReasoningBlock, ...]:
    """Return the reasoning blocks in `reasoning_details`. Fragments are joined, and invalid values are skipped."""
    thoughts: list[ReasoningBlock] = []
    indexes: list[Any] = []
    for item in value if isinstance(value, list) else []:
        thought = _thought(item) if isinstance(item, dict) else None
        if thought is None:
            continue
        index = item.get("index")
        if thoughts and index is not None and index == indexes[-1] and thought.form is thoughts[-1].form:
            thoughts[-1] = join(thoughts[-1], thought)
        else:
            thoughts.append(thought)
            indexes.append(index)
    return tuple(thoughts)


def _thought(item: Mapping[str, Any]) -> ReasoningBlock | None:
    form = FORMS.get(str(item.get("type")))
    if form is None:
        return None
    text, encrypted = non_empty_text(item.get(TYPES[form][1])), form is ThoughtForm.ENCRYPTED
    proof = text if encrypted else non_empty_text(item.get("signature"))
    if not (text or proof):
        return None
    return ReasoningBlock(
        form,
        "" if encrypted else text or "",
        proof,
        id=non_empty_text(item.get("id")),
        dialect=non_empty_text(item.get("format")),
    )


def join(first: ReasoningBlock, second: ReasoningBlock) -> ReasoningBlock:
    encrypted = first.form is ThoughtForm.ENCRYPTED
    proof = (first.proof or "") + (second.proof or "") if encrypted else second.proof or first.proof
    return ReasoningBlock(
        first.form,
        first.text + second.text,
        proof,
        first.offset,
        first.calls,
        first.id or second.id,
        first.dialect or second.dialect,
        first.origin,
    )


def parse_signature(value: Mapping[str, Any]) -> str | None:
    extra = value.get(EXTRA)
    google = extra.get("google") if isinstance(extra, dict) else None
    return non_empty_text(google.get("thought_signature")) if isinstance(google, dict) else None


def signature_field(signature: str | None) -> dict[str, Any]:
    return {EXTRA: {"google": {"thought_signature": signature}}} if signature else {}
