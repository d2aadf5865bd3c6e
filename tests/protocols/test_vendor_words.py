"""All values and fields of answers in the vendors' SDKs are in the gateway's tables. If an SDK gets a new one, a test
fails.

The values are read from the types of the installed SDKs.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any

import pytest
from anthropic import types as anthropic_types
from anthropic.types import beta as anthropic_beta
from google.genai import types as gemini_types
from openai.types import chat, completion_usage, responses
from openai.types.responses import response_usage
from pydantic import BaseModel

from capabilities.core.protocols.answer_fields import UNFINISHED, WHOLE, map_ending
from capabilities.core.protocols.anthropic import replies as anthropic_finish
from capabilities.core.protocols.anthropic import replies as anthropic_usage
from capabilities.core.protocols.gemini import replies as gemini_finish
from capabilities.core.protocols.gemini import replies as gemini_usage
from capabilities.core.protocols.openai import replies as openai_finish
from capabilities.core.protocols.openai import replies as openai_usage
from capabilities.core.protocols.openai_responses import replies as responses_finish
from capabilities.core.protocols.openai_responses import replies as responses_usage
from tests.lab.vendor_types import literals_in

FINISHES = {
    "openai": {*openai_finish.ENDINGS, *openai_finish.BROKEN},
    "openai-responses": {*responses_finish.ENDINGS, *responses_finish.FAILURES, "incomplete"},
    "anthropic": {*anthropic_finish.ENDINGS},
    "gemini": {*gemini_finish.ENDINGS, *gemini_finish.FAILURES},
}


def names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def unknown(named: Iterable[str], known: Iterable[str]) -> set[str]:
    return set(named) - set(known)


def sdk_finishes() -> list[tuple[str, set[str]]]:
    """Return the stop reasons in each SDK's types, by protocol."""
    return [
        ("openai", literals_in(chat.chat_completion.Choice.model_fields["finish_reason"].annotation)),
        ("openai", literals_in(chat.chat_completion_chunk.Choice.model_fields["finish_reason"].annotation)),
        ("openai-responses", literals_in(responses.ResponseStatus)),
        ("anthropic", literals_in(anthropic_types.StopReason)),
        ("anthropic", literals_in(anthropic_beta.BetaStopReason)),
        ("gemini", {reason.value for reason in gemini_types.FinishReason}),
    ]


def sdk_counts() -> list[tuple[str, set[str], set[str]]]:
    """Return, by protocol, the usage field names in the SDK's types and those in the gateway's table."""
    openai, anthropic, gemini = openai_usage, anthropic_usage, gemini_usage
    tokens, input_details, output_details = (
        responses_usage,
        response_usage.InputTokensDetails,
        response_usage.OutputTokensDetails,
    )
    prompt, completion = completion_usage.PromptTokensDetails, completion_usage.CompletionTokensDetails
    counted = {*anthropic.TOTALS, *anthropic.DETAILS, *anthropic.IGNORED_COUNTS}
    cache_creation, thought = anthropic_types.CacheCreation, anthropic_types.OutputTokensDetails
    metadata, modalities = gemini_types.GenerateContentResponseUsageMetadata, gemini_types.MediaModality
    return [
        ("openai", names(completion_usage.CompletionUsage), {*openai.TOTALS, *openai.DETAILS}),
        ("openai", names(prompt), set(openai.PROMPT)),
        ("openai", names(completion), set(openai.COMPLETION)),
        ("openai-responses", names(responses.ResponseUsage), {*tokens.TOTALS, *tokens.DETAILS}),
        (
            "openai-responses",
            names(input_details),
            {*tokens.DETAILS["input_tokens_details"], "cache_write_tokens_details"},
        ),
        ("openai-responses", names(output_details), set(tokens.DETAILS["output_tokens_details"])),
        *(("anthropic", names(model), counted) for model in (anthropic_types.Usage, anthropic_types.MessageDeltaUsage)),
        *(
            ("anthropic", names(model), counted)
            for model in (anthropic_beta.BetaUsage, anthropic_beta.BetaMessageDeltaUsage)
        ),
        ("anthropic", names(cache_creation), set(anthropic.DETAILS["cache_creation"])),
        ("anthropic", names(anthropic_types.ServerToolUsage), set(anthropic.DETAILS["server_tool_use"])),
        ("openai-responses", names(response_usage.InputTokensDetailsCacheWriteTokensDetails), set(tokens.WRITTEN)),
        ("anthropic", names(thought), set(anthropic.DETAILS["output_tokens_details"])),
        ("gemini", names(metadata), {*gemini.TOTALS, *gemini.DETAILS, *gemini.IGNORED_COUNTS}),
        *(
            ("gemini", {modality.value for modality in modalities}, {*table, *gemini.IGNORED_MODALITIES})
            for table in gemini.DETAILS.values()
        ),
    ]


PARTS: dict[str, tuple[set[str], set[str]]] = {
    "openai answer": (
        {"id", "model", "choices", "usage", "service_tier", "system_fingerprint"},
        {"object", "created", "metadata", "moderation", "obfuscation"},
    ),
    "openai choice": ({"index", "message", "delta", "finish_reason", "logprobs"}, set()),
    "openai message": (
        {"content", "refusal", "tool_calls", "audio", "annotations"},
        {"role", "function_call"},  # The gateway never sends `functions`.
    ),
    "response": (
        {"id", "model", "output", "usage", "status", "error", "incomplete_details", "service_tier"},
        {  # Most of these fields repeat those of the request.
            *("access_programs", "image", "input_transformations", "prompt_cache_diagnostics", "tool_usage"),
            *(
                "object",
                "created_at",
                "completed_at",
                "background",
                "conversation",
                "instructions",
                "max_output_tokens",
            ),
            *("max_tool_calls", "metadata", "moderation", "parallel_tool_calls", "previous_response_id", "prompt"),
            *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier"),
            *("temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
        },
    ),
    "response item": (
        {"message", "reasoning", "function_call", "custom_tool_call", "image_generation_call"},
        {  # Steps of the provider's own tools, whose results are text and citations.
            *("file_search_call", "web_search_call", "computer_call", "code_interpreter_call", "local_shell_call"),
            *("computer_call_output", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call"),
            *("apply_patch_call_output", "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
            *("tool_search_call", "tool_search_output", "additional_tools", "program", "program_output", "compaction"),
            *("function_call_output", "custom_tool_call_output"),  # Results of calls made by the model's program.
        },
    ),
    "anthropic message": (
        {"id", "model", "content", "usage", "stop_reason", "stop_details"},
        {"type", "role", "stop_sequence", "container", "diagnostics"},
    ),
    "anthropic block": (
        {"text", "thinking", "redacted_thinking", "tool_use"},
        {  # Steps of the provider's own tools, whose results are text and citations.
            *("server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"),
            *("bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
            *("tool_search_tool_result", "container_upload"),
        },
    ),
    "anthropic delta": (
        {"text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta"},
        set(),
    ),
    "gemini candidate": (
        {"content", "finishReason", "finishMessage", "groundingMetadata", "citationMetadata"},
        {
            *("index", "tokenCount", "safetyRatings", "avgLogprobs", "logprobsResult", "urlContextMetadata"),
            "continuationToken",  # The finish reason `CONTINUATION` is reported as a truncated answer.
        },
    ),
    "gemini part": (
        {"text", "thought", "thoughtSignature", "functionCall", "inlineData", "fileData"},
        {  # Steps of the provider's own tools, and metadata about the request's files.
            *("toolCall", "toolResponse", "executableCode", "codeExecutionResult", "functionResponse"),
            *("partMetadata", "videoMetadata", "audioMetadata", "speechMetadata", "documentMetadata"),
            *("spreadsheetMetadata", "mediaResolution", "mediaProcessing", "audioTranscription"),
        },
    ),
}
"""Maps each part of an answer to the field names that are read, and to those that are known and ignored."""


def kinds(annotation: Any) -> set[str]:
    type_names: set[str] = set()
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        type_names = literals_in(annotation.model_fields["type"].annotation)
    return type_names.union(*(kinds(argument) for argument in typing.get_args(annotation)))


def sdk_parts() -> list[tuple[str, set[str]]]:
    """Return the field names that each SDK's types have for the parts of an answer."""
    chunks, ending = chat.chat_completion_chunk, anthropic_types.raw_message_delta_event.Delta
    return [
        *(("openai answer", names(model)) for model in (chat.ChatCompletion, chat.ChatCompletionChunk)),
        *(("openai choice", names(model)) for model in (chat.chat_completion.Choice, chunks.Choice)),
        *(("openai message", names(model)) for model in (chat.ChatCompletionMessage, chunks.ChoiceDelta)),
        ("response", names(responses.Response)),
        ("response item", kinds(responses.ResponseOutputItem)),
        *(("anthropic message", names(model)) for model in (anthropic_types.Message, ending)),
        ("anthropic block", kinds(anthropic_types.ContentBlock)),
        ("anthropic delta", kinds(anthropic_types.RawContentBlockDelta)),
        ("gemini candidate", names(gemini_types.Candidate)),
        ("gemini part", names(gemini_types.Part)),
    ]


@pytest.mark.parametrize(("part", "named"), sdk_parts())
def test_every_answer_field_of_the_sdks_is_known(part: str, named: set[str]) -> None:
    read, unread = PARTS[part]
    # Without its types, the SDK would seem to have no fields.
    assert len(named) > 3
    assert not unknown(named, read | unread)


@pytest.mark.parametrize(("protocol", "named"), sdk_finishes())
def test_every_stop_reason_of_the_sdks_is_in_the_table(protocol: str, named: set[str]) -> None:
    # Without its types, the SDK would seem to have no stop reasons.
    assert len(named) > 4
    assert not unknown(named, FINISHES[protocol])


@pytest.mark.parametrize(("protocol", "named", "known"), sdk_counts())
def test_every_usage_field_of_the_sdks_is_in_the_table(protocol: str, named: set[str], known: set[str]) -> None:
    assert named, protocol
    assert not unknown(named, known)


def test_stop_reason_missing_from_the_table_is_detected() -> None:
    assert unknown({"stop", "vanished"}, FINISHES["openai"]) == {"vanished"}
    assert unknown({"STOP", "EVAPORATED"}, FINISHES["gemini"]) == {"EVAPORATED"}


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini"])
def test_unknown_stop_reason_never_counts_as_complete(protocol: str) -> None:
    tables = {
        "openai": openai_finish,
        "openai-responses": responses_finish,
        "anthropic": anthropic_finish,
        "gemini": gemini_finish,
    }
    endings = tables[protocol].ENDINGS
    for reason in ("vanished", "Stop", "done", 7, ["stop"]):
        for has_calls in (False, True):
            assert map_ending(endings, reason, has_calls=has_calls) is UNFINISHED
    assert map_ending(endings, None, has_calls=False) is WHOLE
