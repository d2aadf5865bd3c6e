"""All request fields in the vendors' SDKs are in the gateway's tables. If an SDK gets a new field, a test fails.

The fields are read from the types of the installed SDKs. Each field is assigned to a row of the parameter table, or
listed with the reason why it is not sent.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

import pytest
from anthropic import types as anthropic_types
from anthropic.types import content_block_param, message_create_params
from google.genai import types as gemini_types
from openai.types import chat
from openai.types.chat import chat_completion_content_part_image_param as image_part
from openai.types.chat import chat_completion_content_part_input_audio_param as audio_part
from openai.types.chat import chat_completion_content_part_param as parts
from openai.types.chat import chat_completion_custom_tool_param as custom_tool
from openai.types.chat import chat_completion_message_custom_tool_call_param as custom_call
from openai.types.chat import chat_completion_message_function_tool_call_param as function_call
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from openai.types.shared_params import FunctionDefinition

from capabilities.core.message import Role
from capabilities.core.protocols.anthropic.thinking import BUDGETS
from capabilities.core.protocols.gemini.thinking import thinking_config
from capabilities.core.protocols.parameters import PARAMETERS, Treatment
from routing_admin.gateway.fields import KNOWN_BY_PART, KNOWN_BY_ROLE, KNOWN_CALL_FIELDS
from tests.lab.vendor_types import literals_in


def fields(kind: Any) -> set[str]:
    return set(getattr(kind, "model_fields", None) or typing.get_type_hints(kind))


class NotSent(str):
    """The reason why a vendor's field is not sent."""


SERVER = NotSent("a tool that the vendor runs; it cannot be requested through chat completions")
VERTEX = NotSent("of Vertex, which is not spoken")
CLIENT = NotSent("the SDK's own, never on the wire")
ONE_ANSWER = NotSent("each answer to a request is a call of its own")
OUTPUT = NotSent("how pictures, sound and film are made; chat completions has no word for it")
UNASKED = NotSent("chat completions has no word for it; a provider's extraBody can say it")

OPENAI_MESSAGES: Mapping[str, Any] = {
    "system": chat.ChatCompletionSystemMessageParam,
    "developer": chat.ChatCompletionDeveloperMessageParam,
    "user": chat.ChatCompletionUserMessageParam,
    "assistant": chat.ChatCompletionAssistantMessageParam,
    "tool": chat.ChatCompletionToolMessageParam,
    "function": chat.ChatCompletionFunctionMessageParam,
}
ROLES = {"assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL}
BASIC = {"role", "content"}


def test_every_openai_sdk_parameter_is_in_the_table():
    names = fields(completion_create_params.CompletionCreateParamsBase)
    names |= fields(completion_create_params.CompletionCreateParamsStreaming)
    assert names - set(PARAMETERS) == set()
    options = {f"stream_options.{name}" for name in fields(chat.ChatCompletionStreamOptionsParam)}
    assert options - {"stream_options.include_usage"} - set(PARAMETERS) == set()


@pytest.mark.parametrize("role", list(OPENAI_MESSAGES))
def test_every_openai_sdk_message_field_is_read_or_in_the_table(role: str):
    known = KNOWN_BY_ROLE.get(ROLES.get(role, Role.USER), frozenset(BASIC))
    rows = {f"messages[].{name}" for name in fields(OPENAI_MESSAGES[role]) - known}
    assert rows - set(PARAMETERS) == set()


def test_every_openai_sdk_content_part_is_in_the_table_with_all_fields():
    types = {
        "image_url": image_part.ImageURL,
        "input_audio": audio_part.InputAudio,
        "file": parts.FileFile,
        "text": None,
        "refusal": None,
    }
    kinds = (*typing.get_args(parts.ChatCompletionContentPartParam), chat.ChatCompletionContentPartRefusalParam)
    for kind in kinds:
        (kind_name,) = typing.get_args(typing.get_args(typing.get_type_hints(kind, include_extras=True)["type"])[0])
        beside = {f"messages[].content[].{name}" for name in fields(kind) - {"type"}}
        within = fields(types[kind_name]) if types[kind_name] else set()
        deeper = {
            f"messages[].content[].{kind_name}.{name}" for name in within - KNOWN_BY_PART.get(kind_name, frozenset())
        }
        assert (beside | deeper) - set(PARAMETERS) == set()


def test_every_openai_sdk_tool_and_call_field_is_read_or_in_the_table():
    assert fields(FunctionDefinition) == {"name", "description", "parameters", "strict"}
    assert fields(custom_tool.Custom) == {"name", "description", "format"}
    assert fields(chat.ChatCompletionFunctionToolParam) == {"type", "function"}
    assert fields(custom_tool.ChatCompletionCustomToolParam) == {"type", "custom"}
    assert fields(function_call.ChatCompletionMessageFunctionToolCallParam) <= KNOWN_CALL_FIELDS
    assert fields(custom_call.ChatCompletionMessageCustomToolCallParam) <= KNOWN_CALL_FIELDS
    assert fields(chat.ChatCompletionAllowedToolsParam) == {"mode", "tools"}
    kinds = typing.get_args(chat.ChatCompletionToolChoiceOptionParam)
    assert {kind.__name__ for kind in kinds if hasattr(kind, "__name__")} - {"Literal"} == {
        *("ChatCompletionAllowedToolChoiceParam", "ChatCompletionNamedToolChoiceParam"),
        "ChatCompletionNamedToolChoiceCustomParam",
    }


def test_every_openai_reasoning_effort_maps_to_anthropic_and_gemini():
    from openai.types.shared_params import ReasoningEffort

    efforts = {literal for literal in literals_in(ReasoningEffort) if literal != "none"}
    assert efforts == set(BUDGETS)
    assert all(thinking_config("gemini-3-flash", effort) for effort in (*efforts, "none"))


ANTHROPIC: Mapping[str, str] = {
    "model": "model",
    "messages": "messages",
    "system": "messages",
    "max_tokens": "max_tokens",
    "stream": "stream",
    "stop_sequences": "stop",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "thinking": "thinking",
    "output_config": "reasoning_effort",
    "metadata": "metadata",
    "service_tier": "service_tier",
    "cache_control": "cache_control",
    "container": SERVER,
    "diagnostics": UNASKED,
    "inference_geo": UNASKED,
    "speed": UNASKED,
    "user_profile_id": UNASKED,
    "workspace_id": UNASKED,
}
ANTHROPIC_BLOCKS: Mapping[str, str] = {
    "text": "messages[].content[].text",
    "image": "messages[].content[].image_url",
    "document": "messages[].content[].file",
    "tool_use": "messages[].tool_calls",
    "tool_result": "messages",
    "thinking": "messages[].reasoning_content",
    "redacted_thinking": NotSent("the carrier of reasoning's"),
    "server_tool_use": SERVER,
    "web_search_tool_result": SERVER,
    "web_fetch_tool_result": SERVER,
    "code_execution_tool_result": SERVER,
    "bash_code_execution_tool_result": SERVER,
    "container_upload": SERVER,
    "text_editor_code_execution_tool_result": SERVER,
    "tool_search_tool_result": SERVER,
    "search_result": UNASKED,
}
ANTHROPIC_FIELDS: Mapping[Any, Mapping[str, str]] = {
    anthropic_types.TextBlockParam: {"citations": UNASKED},
    anthropic_types.ImageBlockParam: {"source": "messages[].content[].image_url", "transformations": UNASKED},
    anthropic_types.DocumentBlockParam: {
        "source": "messages[].content[].file",
        "title": "messages[].content[].file",
        "citations": UNASKED,
        "context": UNASKED,
    },
    anthropic_types.ToolUseBlockParam: {
        **dict.fromkeys(("id", "name", "input"), "messages[].tool_calls"),
        "caller": SERVER,
        "toolset_name": SERVER,
    },
    anthropic_types.ToolResultBlockParam: {
        **dict.fromkeys(("tool_use_id", "content"), "messages"),
        "is_error": UNASKED,
        "toolset_name": SERVER,
    },
    anthropic_types.ToolParam: {
        **dict.fromkeys(("name", "description", "input_schema"), "tools"),
        "strict": "tools[].function.strict",
        "allowed_callers": SERVER,
        "defer_loading": UNASKED,
        "eager_input_streaming": UNASKED,
        "input_examples": UNASKED,
    },
}
COMMON = {"type": "messages", "text": "messages", "cache_control": "messages[].content[].cache_control"}

GEMINI: Mapping[str, str] = {
    "system_instruction": "messages",
    "tools": "tools",
    "tool_config": "tool_choice",
    "stop_sequences": "stop",
    "max_output_tokens": "max_tokens",
    "thinking_config": "reasoning_effort",
    "response_modalities": "modalities",
    **{name: name for name in ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")},
    **dict.fromkeys(("response_mime_type", "response_json_schema"), "response_format"),
    "response_schema": NotSent("responseJsonSchema says more"),
    "candidate_count": ONE_ANSWER,
    **dict.fromkeys(("logprobs", "response_logprobs"), NotSent("its answer's form is another one than OpenAI's")),
    **dict.fromkeys(("http_options", "should_return_http_response", "automatic_function_calling"), CLIENT),
    **dict.fromkeys(("labels", "model_armor_config", "model_selection_config", "routing_config"), VERTEX),
    **dict.fromkeys(("image_config", "speech_config", "generation_output_config"), OUTPUT),
    **dict.fromkeys(("cached_content", "safety_settings", "media_resolution", "audio_timestamp", "store"), UNASKED),
    **dict.fromkeys(("service_tier", "audio_transcription_config", "enable_enhanced_civic_answers"), UNASKED),
    **dict.fromkeys(("automatic_continuation", "continuation_token"), UNASKED),
}
GEMINI_PARTS: Mapping[str, str] = {
    "text": "messages[].content[].text",
    "inline_data": "messages[].content[].image_url",
    "file_data": "messages[].content[].image_url",
    "function_call": "messages[].tool_calls",
    "function_response": "messages",
    "thought": NotSent("the carrier of reasoning's"),
    "thought_signature": "messages[].tool_calls",
    **dict.fromkeys(("code_execution_result", "executable_code", "tool_call", "tool_response"), SERVER),
    **dict.fromkeys(("media_resolution", "video_metadata", "media_processing", "part_metadata"), UNASKED),
    **dict.fromkeys(("audio_metadata", "audio_transcription", "speech_metadata"), UNASKED),
    **dict.fromkeys(("document_metadata", "spreadsheet_metadata"), UNASKED),
}
SAID_BY_PROTOCOL = NotSent("said by the protocol itself, or by the items")
STATE = NotSent("needs answers that the provider keeps")
RESPONSES: Mapping[str, str] = {
    **{name: name for name in ("model", "stream", "stream_options", "temperature", "top_p", "tools", "tool_choice")},
    **{name: name for name in ("parallel_tool_calls", "metadata", "moderation", "prompt_cache_key", "reasoning")},
    **{name: name for name in ("prompt_cache_options", "prompt_cache_retention", "safety_identifier", "user")},
    **{name: name for name in ("service_tier", "store", "top_logprobs")},
    "input": "messages",
    "max_output_tokens": "max_completion_tokens",
    "text": "response_format",
    **dict.fromkeys(("include", "instructions"), SAID_BY_PROTOCOL),
    **dict.fromkeys(("previous_response_id", "conversation", "background", "prompt"), STATE),
    **dict.fromkeys(("max_tool_calls", "image"), SERVER),
    **dict.fromkeys(("truncation", "context_management", "access_programs"), UNASKED),
}
GEMINI_TOOL: Mapping[str, str] = {
    **dict.fromkeys(("name", "description", "parameters_json_schema"), "tools"),
    "parameters": NotSent("parametersJsonSchema says more"),
    "behavior": UNASKED,
    **dict.fromkeys(("response", "response_json_schema"), UNASKED),
}
GEMINI_THINKING: Mapping[str, str] = {
    **dict.fromkeys(("thinking_level", "thinking_budget"), "reasoning_effort"),
    "include_thoughts": UNASKED,
}


def sdk_names() -> list[tuple[str, set[str], Mapping[str, str]]]:
    """Return, for each protocol, the field names in its SDK's types and those in the gateway's table."""
    blocks: set[str] = set()
    for kind in typing.get_args(content_block_param.ContentBlockParam):
        blocks |= literals_in(typing.get_type_hints(kind, include_extras=True)["type"])
    streamed = fields(message_create_params.MessageCreateParamsStreaming)
    return [
        ("anthropic", fields(message_create_params.MessageCreateParamsBase) | streamed, ANTHROPIC),
        ("anthropic", blocks, ANTHROPIC_BLOCKS),
        *(("anthropic", fields(kind), {**COMMON, **known}) for kind, known in ANTHROPIC_FIELDS.items()),
        ("openai-responses", fields(response_create_params.ResponseCreateParamsBase), RESPONSES),
        ("openai-responses", fields(response_create_params.ResponseCreateParamsStreaming), RESPONSES),
        ("gemini", fields(gemini_types.GenerateContentConfig), GEMINI),
        ("gemini", fields(gemini_types.Part), GEMINI_PARTS),
        ("gemini", fields(gemini_types.FunctionDeclaration), GEMINI_TOOL),
        ("gemini", fields(gemini_types.ThinkingConfig), GEMINI_THINKING),
    ]


@pytest.mark.parametrize(("protocol", "names", "known"), sdk_names())
def test_every_parameter_of_other_vendor_sdks_has_a_row_or_a_reason(
    protocol: str, names: set[str], known: Mapping[str, str]
):
    assert names - set(known) == set()
    rows = {row for name, row in known.items() if name in names and not isinstance(row, NotSent)}
    assert rows <= set(PARAMETERS)
    assert [row for row in rows if PARAMETERS[row].by(protocol) is Treatment.DROPPED] == []


def test_parameter_missing_from_the_table_is_detected():
    assert {"brand_new"} - set(GEMINI) == {"brand_new"}
    assert isinstance(GEMINI["labels"], NotSent)
