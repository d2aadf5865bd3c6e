"""Read model facts from LiteLLM's map, models.dev's list, providers' own lists and vendors' SDKs.

The functions for lists take parsed JSON and yield rows: the source's name for the host, the model's name, and a
statement. They include only chat models about which at least one fact is stated. The functions for SDKs take the source
code of a module and return retirement dates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from capabilities.core.providers.catalogue.judgement import Statement, order_letters
from capabilities.core.providers.catalogue.names import is_chat_model

MODES = frozenset({"chat", "responses", "completion"})
FLAGS: Mapping[str, tuple[tuple[str, ...], tuple[str, str] | None]] = {
    "v": (("supports_vision", "supports_image_input"), ("supported_modalities", "image")),
    "a": (("supports_audio_input",), ("supported_modalities", "audio")),
    "d": (("supports_video_input",), ("supported_modalities", "video")),
    "f": (("supports_pdf_input",), None),
    "A": (("supports_audio_output",), ("supported_output_modalities", "audio")),
    "s": (("supports_response_schema", "supports_native_structured_output"), None),
    "t": (("supports_function_calling",), None),
}
"""Maps capability letters to LiteLLM's flags, and to the modality in LiteLLM's lists that implies the same
capability."""
MODALITIES = {"v": "image", "a": "audio", "d": "video", "f": "pdf"}
"""Maps capability letters to models.dev's name for the input modality."""
OWN_MODALITIES = {"v": {"image"}, "a": {"audio"}, "d": {"video"}, "f": {"file", "pdf"}}
OWN_PARAMETERS = {"s": "structured_outputs", "t": "tools"}
OWN_FLAGS: Mapping[str, tuple[str, ...]] = {
    "v": ("vision", "image_input", "supports_image_in"),
    "d": ("supports_video_in",),
    "f": ("pdf_input",),
    "a": ("audio",),
    "s": ("structured_outputs",),
    "t": ("function_calling",),
}
OWN_INPUT = ("max_input_tokens", "inputTokenLimit", "context_length", "max_context_length", "context_window",
             "max_model_len")  # fmt: skip
OWN_OUTPUT = ("max_completion_tokens", "outputTokenLimit", "max_output_tokens", "max_tokens")
OWN_ENDS = ("shutdown_date", "retires_at", "expiration_date", "deprecation")
"""`OWN_INPUT`, `OWN_OUTPUT` and `OWN_ENDS` are the field names of the limits and of the retirement date in providers'
own lists."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A model as listed by a source. `ends` is the model's retirement day, or None if not stated."""

    host: str
    name: str
    statement: Statement
    ends: date | None = None


def read_litellm(models: Mapping[str, Any]) -> Iterator[Listing]:
    """Yield the chat models in LiteLLM's map for which at least one fact or a retirement date is stated."""
    for name, facts in models.items():
        if not isinstance(facts, Mapping) or facts.get("mode") not in MODES:
            continue
        flags_by_letter = {letter: _flag(facts, *flags) for letter, flags in FLAGS.items()}
        ends = _day(facts.get("deprecation_date"))
        if ends or any(flag is not None for flag in flags_by_letter.values()):
            numbers = _tokens(facts.get("max_input_tokens")), _tokens(facts.get("max_output_tokens"))
            yield Listing(str(facts.get("litellm_provider", "")), name, _statement(flags_by_letter, *numbers), ends)


def _flag(facts: Mapping[str, Any], flags: tuple[str, ...], modality: tuple[str, str] | None) -> bool | None:
    values = [facts[flag] for flag in flags if isinstance(facts.get(flag), bool)]
    modalities = facts.get(modality[0]) if modality else None
    if modality and isinstance(modalities, list) and modalities:
        values.append(modality[1] in modalities)
    return any(values) if values else None


def read_models_dev(providers: Mapping[str, Any]) -> Iterator[Listing]:
    """Yield the chat models in models.dev's `api.json` that read and write text."""
    for host, provider in providers.items():
        models = provider.get("models") if isinstance(provider, Mapping) else None
        for name, facts in (models if isinstance(models, Mapping) else {}).items():
            statement = _models_dev_statement(facts)
            if statement is not None and is_chat_model(name.lower()):
                yield Listing(host, name, statement)


def _models_dev_statement(facts: Any) -> Statement | None:
    sides = facts.get("modalities") if isinstance(facts, Mapping) else None
    inputs, outputs = (sides.get(side) if isinstance(sides, Mapping) else None for side in ("input", "output"))
    if not isinstance(inputs, list) or not isinstance(outputs, list) or "text" not in inputs or "text" not in outputs:
        return None
    flags: dict[str, bool | None] = {letter: name in inputs for letter, name in MODALITIES.items()}
    flags["A"] = "audio" in outputs
    for letter, key in (("s", "structured_output"), ("t", "tool_call")):
        flags[letter] = facts[key] if isinstance(facts.get(key), bool) else None
    limit = facts.get("limit")
    limit = limit if isinstance(limit, Mapping) else {}
    return _statement(flags, _tokens(limit.get("input")) or _tokens(limit.get("context")), _tokens(limit.get("output")))


def read_provider_list(host: str, entries: Iterable[Any]) -> Iterator[Listing]:
    """Yield the chat models in a provider's own list, omitting models for which the list states only an id.

    The field names of OpenRouter, Anthropic, Mistral, Gemini, Moonshot, OpenAI, Groq and vLLM are known (November
    2026).
    """
    for entry in entries:
        # Google's list has `name`, with the prefix `models/`, instead of `id`.
        name = (entry.get("id") or entry.get("name")) if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not is_chat_model(name.lower()):
            continue
        inputs, outputs = _strings_at(entry, "input_modalities"), _strings_at(entry, "output_modalities")
        if outputs is not None and "text" not in outputs:
            continue
        flags = {letter: _own_flag(letter, entry, inputs, outputs) for letter in FLAGS}
        ends = next((day for key in OWN_ENDS if (day := _day(str(entry.get(key) or "")[:10]))), None)
        numbers = (_first_number(entry, OWN_INPUT), _first_number(entry, OWN_OUTPUT))
        listing = Listing(host, name.removeprefix("models/")[:200], _statement(flags, *numbers), ends)
        if listing.statement.declares or ends or any(numbers):
            yield listing


def _own_flag(
    letter: str, entry: Mapping[str, Any], inputs: list[str] | None, outputs: list[str] | None
) -> bool | None:
    # A list of modalities is complete, so a missing modality means no. Use parameters and flags only if there is no
    # such list.
    if letter in OWN_MODALITIES and inputs is not None:
        return bool(OWN_MODALITIES[letter] & set(inputs))
    if letter == "A" and outputs is not None:
        return "audio" in outputs
    parameters = _strings_at(entry, "supported_parameters")
    if letter in OWN_PARAMETERS and parameters is not None:
        return OWN_PARAMETERS[letter] in parameters
    for holder in (entry.get("capabilities"), entry):
        for key in OWN_FLAGS.get(letter, ()):
            value = holder.get(key) if isinstance(holder, Mapping) else None
            value = value.get("supported") if isinstance(value, Mapping) else value
            if isinstance(value, bool):
                return value
    return None


def _strings_at(entry: Mapping[str, Any], key: str) -> list[str] | None:
    for holder in (entry.get("architecture"), entry):
        values = holder.get(key) if isinstance(holder, Mapping) else None
        if isinstance(values, list) and values:
            return [str(value) for value in values]
    return None


def _first_number(entry: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    top = entry.get("top_provider")
    holders = (entry, top if isinstance(top, Mapping) else {})
    return next((count for holder in holders for key in keys if (count := _tokens(holder.get(key)))), None)


def read_openai_ends(module: str) -> dict[str, date]:
    """Return the retirement dates by model, from the docstring of a model list in the `openai` package."""
    ends: dict[str, date] = {}
    # An item of this list may name several models before the date.
    for item in re.split(r"\n- ", module.replace("\n  ", " ")):
        match = re.search(r":\s+Announced shutdown date:\s+(\d{4}-\d{2}-\d{2})", item)
        if match:
            ends |= dict.fromkeys(re.findall(r'"([^"]+)"', item[: match.start()]), date.fromisoformat(match[1]))
    return ends


def read_anthropic_ends(module: str) -> dict[str, date]:
    """Return the retirement dates by model, from `DEPRECATED_MODELS` in a module of the `anthropic` package."""
    for node in ast.parse(module).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DEPRECATED_MODELS":
            days: Mapping[str, str] = ast.literal_eval(node.value)
            return {model: _english_day(day) for model, day in days.items()}
    return {}


def _english_day(text: str) -> date:
    return datetime.strptime(re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text), "%B %d, %Y").date()


def _statement(flags: Mapping[str, bool | None], max_input: int | None, max_output: int | None) -> Statement:
    # A flag of None means that the source states nothing. This is not the same as no.
    yes, no = ({letter for letter, flag in flags.items() if flag is state} for state in (True, False))
    return Statement(order_letters(yes), order_letters(no), "", max_input, max_output)


def _tokens(count: Any) -> int | None:
    whole = isinstance(count, int | float) and not isinstance(count, bool) and 0 < count < 10**12
    return int(count) if whole else None


def _day(text: Any) -> date | None:
    try:
        return date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
