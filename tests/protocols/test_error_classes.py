"""Error responses are classified as faults. There is a case for each rule, with messages from real providers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.errors import classify_status, parse_failure
from capabilities.core.providers.redaction import MESSAGE_BYTES
from capabilities.core.wire import Answer, Failure, Fault
from tests.lab.shapes import VENDORS

REFUSED = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
QUOTA = "You exceeded your current quota, please check your plan and billing details."
PER_DAY = [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]
PER_MINUTE = [{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}, {"retryDelay": "34s"}]


def fail(status: int, body: Any, **headers: str) -> Failure:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse_failure(status, {name.replace("_", "-"): value for name, value in headers.items()}, data)


def openai(message: str, **fields: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


def gemini(code: int, message: str, status: str, details: Any = ()) -> Any:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


CASES: list[tuple[int, Any, Fault]] = [
    (400, openai("Expected a data URL but got unsupported MIME type 'audio/flac'."), Fault.CAPABILITY_MISMATCH),
    (400, openai("Unknown option PerDay in your prompt"), Fault.HTTP_400),
    (400, openai("Unsupported value", code="unsupported_value", param="messages"), Fault.HTTP_400),
    (400, openai("This model does not support image_url content."), Fault.CAPABILITY_MISMATCH),
    (403, {"error": {"code": "multimodal_not_enabled", "message": "no"}}, Fault.CAPABILITY_MISMATCH),
    (404, openai("No endpoints found that support image input"), Fault.CAPABILITY_MISMATCH),
    (
        500,
        openai("image input is not supported - hint: if this is unexpected, provide the mmproj"),
        Fault.CAPABILITY_MISMATCH,
    ),
    (400, openai("messages[0].content must be a string"), Fault.CAPABILITY_MISMATCH),
    (422, {"detail": "unknown variant `image_url`, expected `text`"}, Fault.CAPABILITY_MISMATCH),
    (429, openai(QUOTA, code="insufficient_quota"), Fault.HTTP_429_QUOTA),
    (400, {"type": "error", "error": {"message": "Your credit balance is too low to access"}}, Fault.HTTP_429_QUOTA),
    (429, gemini(429, QUOTA, "RESOURCE_EXHAUSTED", PER_DAY), Fault.HTTP_429_QUOTA),
    (429, gemini(429, QUOTA, "RESOURCE_EXHAUSTED", PER_MINUTE), Fault.HTTP_429_WAIT),
    (429, {"error": {"code": "1113", "message": "您的账户余额不足"}}, Fault.HTTP_429_QUOTA),
    (402, openai("Insufficient Balance"), Fault.HTTP_402),
    (429, openai("Rate limit reached for requests", code="rate_limit_exceeded"), Fault.HTTP_429),
    (400, gemini(400, "API key not valid.", "INVALID_ARGUMENT", [{"reason": "API_KEY_INVALID"}]), Fault.HTTP_401),
    (400, openai("too long", code="context_length_exceeded"), Fault.CONTEXT_LENGTH),
    (400, openai("prompt is too long: 210000 tokens > 200000 maximum"), Fault.CONTEXT_LENGTH),
    (400, gemini(400, "The input token count (9) exceeds the maximum", "INVALID_ARGUMENT"), Fault.CONTEXT_LENGTH),
    (400, openai("no", code="content_filter"), Fault.CONTENT_POLICY),
    (400, openai("Content Exists Risk"), Fault.CONTENT_POLICY),
    (
        400,
        {"code": "data_inspection_failed", "message": "Input may be inappropriate."},
        Fault.CONTENT_POLICY,
    ),
    (
        400,
        {"error": {"code": "1301", "message": "系统检测到输入可能包含不安全或敏感内容"}},
        Fault.CONTENT_POLICY,
    ),
    (400, openai("Something else"), Fault.HTTP_400),
    (401, {"detail": "Unauthorized"}, Fault.HTTP_401),
    (404, openai("The model `x` does not exist", code="model_not_found"), Fault.HTTP_404),
    (422, {"detail": [{"loc": ["body", "messages", 0], "msg": "Field required", "type": "missing"}]}, Fault.HTTP_422),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Fault.HTTP_529),
    (503, b"<html><head><title>503 Service Temporarily Unavailable</title></head></html>", Fault.HTTP_503),
    (502, b"", Fault.HTTP_502),
    (418, b"teapot", Fault.HTTP_4XX),
    (599, b"", Fault.HTTP_5XX),
    (199, b"", Fault.HTTP_OTHER),
]


@pytest.mark.parametrize(("status", "body", "fault"), CASES)
def test_error_response_is_classified_by_message_and_status(status: int, body: Any, fault: Fault) -> None:
    """The error's message determines its class if the status allows this. Otherwise, the status determines it."""
    failure = fail(status, body)
    assert failure.fault is fault
    assert failure.status == status
    assert failure.message


FORBIDDEN = (
    "{'type': 'extra_forbidden', 'loc': ('body', 'max_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 5}"
)
"""A validation error in the format of vLLM and SGLang: the `repr` of a Python object."""
PARAMETERS: list[tuple[int, Any, str]] = [
    (400, openai(REFUSED, code="unsupported_parameter", param="max_tokens"), "max_tokens"),
    (400, openai("Unsupported value: 'temperature'", code="unsupported_value", param="temperature"), "temperature"),
    (400, openai("temperature: Extra inputs are not permitted"), "temperature"),
    (400, openai("output_config.effort: Extra inputs are not permitted"), "effort"),
    (400, openai("Unrecognized request argument supplied: seed"), "seed"),
    (400, gemini(400, 'Invalid JSON payload. Unknown name "topK" at x', "INVALID_ARGUMENT"), "topK"),
    (422, {"detail": [{"loc": ["body", "user"], "msg": "Extra inputs", "type": "extra_forbidden"}]}, "user"),
    (400, {"object": "error", "message": f"[{FORBIDDEN}]", "type": "BadRequestError", "code": 400}, "max_tokens"),
    (400, openai(f'1 validation error:\n  {FORBIDDEN}\n\n  File "x.py"'), "max_tokens"),
    (400, openai(f"[{FORBIDDEN.replace('(', '[').replace(')', ']')}]"), "max_tokens"),
    (400, openai("body.max_tokens: Extra inputs are not permitted"), "max_tokens"),
    (400, {"error": {"message": "No.", "code": "extra_forbidden", "param": "body.max_tokens"}}, "max_tokens"),
    (
        400,
        openai("1 validation error for Request\nmax_tokens\n  Extra inputs are not permitted [type=x]"),
        "max_tokens",
    ),
    (
        422,
        {"detail": [{"loc": ["body", "a"], "type": "missing"}, {"loc": ["body", "b"], "type": "extra_forbidden"}]},
        "b",
    ),
    (400, openai("This model does not support the effort parameter."), "effort"),
]


@pytest.mark.parametrize(("status", "body", "param"), PARAMETERS)
def test_rejected_parameter_is_named_in_the_failure(status: int, body: Any, param: str) -> None:
    """With the parameter's name, the call can be repeated without it."""
    failure = fail(status, body)
    assert (failure.fault, failure.param) == (Fault.UNSUPPORTED_PARAMETER, param)


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("Unrecognized request arguments supplied: seed, logit_bias, user", ["seed", "logit_bias", "user"]),
        (
            "2 validation errors for Request\nseed\n  Extra inputs are not permitted [type=x]\nuser\n"
            "  Extra inputs are not permitted [type=x]",
            ["seed", "user"],
        ),
        (f"[{FORBIDDEN}, {FORBIDDEN.replace('max_tokens', 'seed')}]", ["max_tokens", "seed"]),
        ("Unsupported parameter: 'seed' is not supported with this model.", ["seed"]),
    ],
)
def test_all_rejected_parameters_are_named_in_the_failure(sentence: str, names: list[str]) -> None:
    failure = fail(400, openai(sentence))
    assert [failure.param, *failure.further_params] == names


@pytest.mark.parametrize(
    ("sentence", "is_value_only"),
    [
        ("'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'high'.", True),
        ("'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", False),
    ],
)
def test_rejected_value_is_distinguished_from_a_rejected_parameter(sentence: str, is_value_only: bool) -> None:
    """A rejected value can be replaced with another one, whereas a rejected parameter must be left out."""
    failure = fail(400, openai(f"Unsupported value: {sentence}", code="unsupported_value", param="p"))
    assert (failure.fault, failure.refuses_value_only) == (Fault.UNSUPPORTED_PARAMETER, is_value_only)


def test_rejection_without_a_removable_parameter_is_a_plain_400() -> None:
    """A path into the messages is not a parameter that can be left out."""
    body = openai("Unsupported value", code="unsupported_value", param="messages[0].role")
    assert fail(400, body).fault is Fault.HTTP_400


@pytest.mark.parametrize(
    ("message", "capability"),
    [
        ("This model does not support image input", "vision"),
        ("does not support audio", "audio"),
        ("video input is not supported", "video"),
        ("No endpoints found that support file input", "file"),
        ("messages[0].content must be a string", None),
    ],
)
def test_rejected_content_kind_names_the_capability(message: str, capability: str | None) -> None:
    """If the error names a capability, only content that needs it is replaced by a description in the next call."""
    assert fail(400, openai(message)).param == capability


@pytest.mark.parametrize(
    ("headers", "retry_after", "fault"),
    [
        ({}, None, Fault.HTTP_429),
        ({"retry_after": "2"}, 2.0, Fault.HTTP_429),
        ({"retry_after": "30"}, 30.0, Fault.HTTP_429_WAIT),
        ({"retry_after": ""}, None, Fault.HTTP_429),
        ({"retry_after": "-3"}, None, Fault.HTTP_429_BAD_HEADER),
        ({"retry_after": "NaN"}, None, Fault.HTTP_429_BAD_HEADER),
        ({"retry_after": "999999999"}, None, Fault.HTTP_429_BAD_HEADER),
        ({"retry_after": "Mon, 01 Jan 2024 00:00:00 GMT"}, None, Fault.HTTP_429_BAD_HEADER),
        ({"retry_after": "soon"}, None, Fault.HTTP_429_BAD_HEADER),
    ],
)
def test_rate_limits_are_classified_by_retry_after_duration(
    headers: dict[str, str], retry_after: float | None, fault: Fault
) -> None:
    """There is no wait for a `Retry-After` of more than five seconds. An invalid `Retry-After` has its own fault."""
    failure = fail(429, openai("slow down"), **headers)
    assert (failure.fault, failure.retry_after) == (fault, retry_after)


def test_redirect_is_a_failure_with_the_redacted_target_url() -> None:
    failure = fail(302, b"", Location="http://10.0.0.1/?key=abcdefgh12345")
    assert failure.fault is Fault.REDIRECT
    assert failure.message == "redirected to http://10.0.0.1/?key=…"


@pytest.mark.parametrize("protocol", list(VENDORS))
@given(
    status=st.integers(100, 999),
    body=st.binary(max_size=200) | st.text(max_size=50).map(str.encode),
    kind=st.text(max_size=20),
)
def test_any_response_decodes_to_one_answer_or_one_failure(protocol: str, status: int, body: bytes, kind: str) -> None:
    outcome = PROTOCOLS[protocol].decode(status, {"content-type": kind}, body)
    assert isinstance(outcome, Answer | Failure)
    if isinstance(outcome, Failure):
        assert len(outcome.message.encode()) <= MESSAGE_BYTES
        assert isinstance(outcome.fault, Fault)


WORDS = st.sampled_from(
    [
        "error",
        "choices",
        "message",
        "content",
        "delta",
        "finish_reason",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "type",
        "text",
        "index",
        "usage",
        "id",
        "candidates",
        "parts",
        "functionCall",
        "promptFeedback",
        "usageMetadata",
        "finishReason",
        "code",
        "details",
        "base_resp",
        "detail",
        "input",
        "stop_reason",
        "content_block",
        "retryDelay",
        "violations",
        "loc",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize("protocol", list(VENDORS))
@given(value=JSON, status=st.sampled_from([200, 400, 429, 500]))
def test_any_json_body_decodes_to_an_answer_or_a_failure(protocol: str, value: Any, status: int) -> None:
    body = json.dumps(value).encode()
    assert isinstance(PROTOCOLS[protocol].decode(status, {}, body), Answer | Failure)
    decoder = PROTOCOLS[protocol].decoder()
    assert [*decoder.feed(b"data: " + body + b"\n\n"), *decoder.close()]


@given(st.integers(100, 999))
def test_every_status_has_a_fault(status: int) -> None:
    assert isinstance(classify_status(status), Fault)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"error": {"code": 429, "message": "slow"}}, Fault.HTTP_429),
        ({"error": {"code": "insufficient_quota", "message": "x", "type": "insufficient_quota"}}, Fault.HTTP_429_QUOTA),
        ({"error": {"code": 402, "message": "credits"}}, Fault.HTTP_402),
        ({"error": "model is loading"}, Fault.HTTP_500),
        ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, Fault.HTTP_429),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, Fault.HTTP_401),
        (
            {"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "x"}, "message": {}}]},
            Fault.HTTP_502,
        ),
        ({"choices": [{"finish_reason": "insufficient_system_resource", "message": {}}]}, Fault.HTTP_503),
        ({"choices": None}, Fault.EMPTY_CHOICES),
        ({"choices": [3]}, Fault.BAD_SHAPE),
        ({"choices": [{"message": None}]}, Fault.BAD_SHAPE),
    ],
)
def test_error_in_a_status_200_body_is_classified_by_its_own_code(body: Any, fault: Fault) -> None:
    outcome = PROTOCOLS["openai"].decode(200, {"content-type": "application/json"}, json.dumps(body).encode())
    assert isinstance(outcome, Failure)
    assert outcome.fault is fault


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"content": "hi"}, "stop"),
        ({"content": None, "reasoning_content": "hm"}, "stop"),
        ({"content": "", "reasoning": "hm"}, "stop"),
        ({"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, "stop"),
        ({"content": None, "refusal": "no"}, "stop"),
        ({"content": ""}, "length"),
        ({"content": ""}, "content_filter"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, "stop"),
    ],
)
def test_answer_with_only_reasoning_or_tool_calls_is_not_empty(message: Any, reason: str) -> None:
    body = {"choices": [{"message": message, "finish_reason": reason}]}
    outcome = PROTOCOLS["openai"].decode(200, {}, json.dumps(body).encode())
    assert isinstance(outcome, Answer)
    assert outcome.finish_reason == ("tool_calls" if message.get("tool_calls") else reason)


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("openai", {"choices": [{"message": {"content": None}, "finish_reason": "tool_calls"}]}),
        ("anthropic", {"type": "message", "content": [], "stop_reason": "tool_use"}),
    ],
)
def test_announced_but_missing_tool_call_is_an_empty_answer(protocol: str, body: Any) -> None:
    """Only the token limit and the content filter are accepted as reasons for an answer without text."""
    outcome = PROTOCOLS[protocol].decode(200, {}, json.dumps(body).encode())
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.EMPTY_CONTENT


def test_streamed_answer_with_a_missing_tool_call_is_empty() -> None:
    decoder = PROTOCOLS["openai"].decoder()
    event = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    (ending,) = [*decoder.feed(b"data: " + json.dumps(event).encode() + b"\n\n"), *decoder.close()]
    assert isinstance(ending, Failure)
    assert ending.fault is Fault.EMPTY_CONTENT


@pytest.mark.parametrize("code", [[], {}, ["x"], 1.5, "x", True, None])
def test_non_integer_status_code_is_reported_as_an_error(code: Any) -> None:
    """MiniMax's `status_code` may have any type. The error message is read whatever the type."""
    assert fail(400, {"base_resp": {"status_code": code, "status_msg": "No."}}).message == "No."
