"""Classify providers' errors, using tables of messages and statuses that all protocols share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from capabilities.core.json_codec import MAX_ANSWER_VALUES, TooManyValuesError, read_json
from capabilities.core.protocols.error_body import (
    PARAM,
    ErrorBody,
    has_invalid_retry_after,
    parse_error,
    read_error,
    retry_after,
)
from capabilities.core.providers.redaction import READ_CHARACTERS, summarize
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.wire import Failure, Fault

WEB_PAGE = translatable("got a web page: %(said)s")
# The gateway waits at most this many seconds. If a 429 requests a longer wait, the fault is `http_429_wait`.
SHORT_WAIT_SECONDS = 5.0


def _compile_pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


# These words reject a MIME type. They do not reveal which capability is missing, because content of any kind may have
# such a type.
UNSUPPORTED_TYPE = "unsupported mime type"
CAPABILITY = _compile_pattern(
    r"does not support (image|vision|audio|video|pdf|file)",
    r"(image|audio|video|file|pdf|document)s? (input|content)s? (is|are) not (supported|enabled)",
    r"no endpoints found that support",
    r"content must be a string",
    r"multimodal_not_enabled",
    r"unknown variant .?(image_url|input_audio|video_url|file)",
    r"unknown part type",
    r"unsupported chat content part",
    r"(image|audio|video|file) (input|modality) .{0,20}not (supported|enabled)",
    r"not a (multimodal|vision) model",
    r"at most 0 (image|audio|video)",
    UNSUPPORTED_TYPE,
)
TOO_MANY_TOOLS = _compile_pattern(
    r"invalid 'tools': array too long",
    r"too many (tools|functions|function declarations)",
    r"(tools|functions|function_declarations).{0,40}(at most|maximum|no more than|limit of) \d+",
)
POLICY = _compile_pattern(
    r"^(bio_policy|misalignment_policy_violation|image_content_policy_violation)$",
    r"^(content_filter|content_policy_violation|content_policy|data_inspection_failed|ResponsibleAIPolicyViolation)$",
    r"SensitiveContentDetected",
    r"content exists risk",
    r"content management policy",
    r"blocked by (our )?(content|safety|usage) (policy|filter|policies)",
    r"不安全或敏感|敏感内容|内容安全",
)
BAD_KEY = _compile_pattern(r"^API_KEY_(INVALID|EXPIRED)$", r"api key not valid")
QUOTA = _compile_pattern(
    r"^(insufficient_quota|credit_balance_exhausted|billing_hard_limit_reached|exceeded_current_quota_error)$",
    r"^(organization|project)_(spend|usage)_limit_exceeded$",
    r"^(Arrearage|AccountOverdueError|InsufficientBalance)$",
    r"credit balance is too low",
    r"insufficient (balance|credit|funds)",
    r"^(?=\w*PerDay)[\w-]+$",
    r"余额不足|欠费",
)
CONTEXT = _compile_pattern(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded",
    r"maximum context length",
    r"prompt is too long",
    r"(input|prompt).{0,40}(too long|exceeds?).{0,60}(token|context|length|maximum)",
    r"exceeds? the (model'?s )?(maximum )?context",
    r"input token count",
    r"range of input length should be",
)
PARAMETER = _compile_pattern(
    r"unsupported_parameter|unsupported_value|unknown_parameter|extra_forbidden",
    r"extra inputs are not permitted",
    r"unsupported parameter",
    r"unrecognized request argument",
    r"unknown (name|field|parameter)",
    r"does not support the (\w+) parameter",
    r"encrypted content is not supported with this model",
)
_NAMED = re.compile(
    r"unrecognized request arguments? supplied: (?P<a>\w+)"
    r"|(?:unsupported|unknown|unexpected) (?:parameter|name|field|argument):? ['\"`](?P<b>\w+)['\"`]"
    r"|^(?:body\.)?(?:output_config\.)?(?P<c>\w+): extra inputs are not permitted"
    r"|does not support the ['\"`]?(?P<d>\w+)['\"`]? parameter"
    r"|extra_forbidden['\"], ['\"]loc['\"]: [(\[]['\"]body['\"], ['\"](?P<e>\w+)['\"][)\]]"  # vLLM and SGLang
    r"|^(?P<f>\w+)\n {1,4}extra inputs are not permitted",  # pydantic's own format
    re.IGNORECASE | re.MULTILINE,
)
# OpenAI's message when the model accepts the parameter but not its value, such as `minimal` for `reasoning_effort`.
_OTHER_VALUES = re.compile(r"supported values (are|include)", re.IGNORECASE)
_LISTED = re.compile(r"unrecognized request arguments supplied: ([\w, ]+)", re.IGNORECASE)
MAX_FURTHER = 10
# Every request needs these fields, so a retry must not omit them.
REQUIRED_PARAMETERS = frozenset({"model", "messages", "contents", "system", "stream", "input"})
_KINDS = (("vision", r"image|vision|multimodal"), ("audio", "audio"), ("video", "video"), ("file", "file|pdf|document"))
# Statuses that providers use for errors in the request itself.
REQUEST_FAULTS = frozenset({400, 403, 413, 422, 500})

# Each row contains a pattern, the statuses to which it applies (None for all), and the fault. The first matching row is
# used.
RULES: tuple[tuple[re.Pattern[str], frozenset[int] | None, Fault], ...] = (
    (CAPABILITY, None, Fault.CAPABILITY_MISMATCH),
    (TOO_MANY_TOOLS, frozenset({400, 422}), Fault.CAPABILITY_MISMATCH),
    (BAD_KEY, frozenset({400}), Fault.HTTP_401),
    (QUOTA, frozenset({400, 403, 429}), Fault.HTTP_429_QUOTA),
    (POLICY, frozenset({400, 403, 422}), Fault.CONTENT_POLICY),
    (CONTEXT, REQUEST_FAULTS, Fault.CONTEXT_LENGTH),
    (PARAMETER, frozenset({400, 422}), Fault.UNSUPPORTED_PARAMETER),
)

BY_STATUS: Mapping[int, Fault] = MappingProxyType(
    {
        **{code: Fault(f"http_{code}") for code in (400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 425, 429)},
        **{code: Fault(f"http_{code}") for code in (500, 501, 502, 503, 504, 529)},
        505: Fault.HTTP_501,
        **dict.fromkeys(range(520, 528), Fault.HTTP_52X),
    }
)

STATUS_BY_CODE: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "invalid_argument": 400,
        **dict.fromkeys(("invalid_prompt", "data_residency_mismatch"), 400),
        **dict.fromkeys(("bio_policy", "misalignment_policy_violation", "image_content_policy_violation"), 400),
        **dict.fromkeys(("invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url"), 400),
        **dict.fromkeys(("image_too_large", "image_too_small", "image_parse_error", "invalid_image_mode"), 400),
        **dict.fromkeys(("image_file_too_large", "unsupported_image_media_type", "empty_image_file"), 400),
        **dict.fromkeys(("failed_to_download_image", "image_file_not_found"), 400),
        "failed_precondition": 400,
        "content_filter": 400,
        "context_length_exceeded": 400,
        "authentication_error": 401,
        "invalid_api_key": 401,
        "unauthenticated": 401,
        "billing_error": 402,
        "permission_error": 403,
        "permission_denied": 403,
        "not_found_error": 404,
        "not_found": 404,
        "model_not_found": 404,
        "request_too_large": 413,
        "insufficient_quota": 429,
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "resource_exhausted": 429,
        "requests": 429,
        "tokens": 429,
        "api_error": 500,
        "server_error": 500,
        "internal": 500,
        "internal_server_error": 500,
        "unavailable": 503,
        "service_unavailable": 503,
        "timeout_error": 504,
        "deadline_exceeded": 504,
        "overloaded_error": 529,
    }
)


def parse_failure(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Failure:
    """Return the failure for a response that is not 2xx. For `now`, see `retry_after`."""
    if 300 <= status < 400:
        location = next((value for name, value in headers.items() if name.lower() == "location"), "")
        sentence = (
            translatable("redirected to %(place)s", place=summarize(location))
            if location
            else translatable("redirected")
        )
        return Failure(Fault.REDIRECT, sentence, status)
    error = parse_error(body)
    waits = retry_after(headers, now)
    failure = classify(error, status, waits if waits is not None else error.retry_after)
    if failure.fault is Fault.HTTP_429 and failure.retry_after is None and has_invalid_retry_after(headers, now):
        return replace(failure, fault=Fault.HTTP_429_BAD_HEADER)
    return failure


def parse_inner_failure(value: Any, status: int = 200) -> Failure:
    """Return the failure for an error inside a 200 response or a stream. The error's code determines the failure.

    Without a known code, the error counts as an internal error of the provider (500).
    """
    error = read_error(value)
    codes = [code.lower() for code in (error.code, error.kind) if code]
    stated = error.status or next((STATUS_BY_CODE[code] for code in codes if code in STATUS_BY_CODE), None)
    failure = classify(error, stated or 500, error.retry_after)
    return failure if stated else replace(failure, status=status)


def classify(error: ErrorBody, status: int, waits: float | None) -> Failure:
    """Return the failure for an error body, given its status and the requested wait time in seconds."""
    fault = _classify_text(error, status) or classify_status(status)
    param = _param(error, fault)
    if fault is Fault.UNSUPPORTED_PARAMETER and param is None:
        fault = classify_status(status)  # The error names no parameter that a retry could omit.
    if fault is Fault.HTTP_429 and waits is not None and waits > SHORT_WAIT_SECONDS:
        fault = Fault.HTTP_429_WAIT
    message = summarize(error.message) or translatable("HTTP %(status)s", status=status)
    code = summarize(error.code or error.kind or "", limit=200) or None
    failure = Failure(fault, message, status, code, param, waits)
    if fault is not Fault.UNSUPPORTED_PARAMETER:
        return failure
    value_only = bool(_OTHER_VALUES.search(error.message[:READ_CHARACTERS]))
    return replace(failure, further_params=_list_further(error, param), refuses_value_only=value_only)


def classify_status(status: int) -> Fault:
    if status in BY_STATUS:
        return BY_STATUS[status]
    return {4: Fault.HTTP_4XX, 5: Fault.HTTP_5XX}.get(status // 100, Fault.HTTP_OTHER)


def _classify_text(error: ErrorBody, status: int) -> Fault | None:
    lines = error.search_text.splitlines()
    for pattern, statuses, fault in RULES:
        if (statuses is None or status in statuses) and any(pattern.search(text) for text in lines):
            return fault
    return None


def _param(error: ErrorBody, fault: Fault) -> str | None:
    # If content is rejected, `param` is the missing capability. If a parameter is rejected, it is the parameter's name.
    if fault is Fault.CAPABILITY_MISMATCH:
        if TOO_MANY_TOOLS.search(error.search_text):
            return "tools"
        if UNSUPPORTED_TYPE in error.search_text.lower():
            return None
        return next((name for name, pattern in _KINDS if re.search(pattern, error.search_text, re.IGNORECASE)), None)
    if fault is not Fault.UNSUPPORTED_PARAMETER:
        return summarize(error.param, limit=200) if error.param else None
    blamed = (error.param or "").removeprefix("body.")
    if PARAM.match(blamed):
        return blamed if blamed not in REQUIRED_PARAMETERS else None
    match = _NAMED.search(error.message[:READ_CHARACTERS])
    name = next((name for name in match.groups() if name), None) if match else None
    return name if name not in REQUIRED_PARAMETERS else None


def _list_further(error: ErrorBody, first: str | None) -> tuple[str, ...]:
    text = error.message[:READ_CHARACTERS]
    # OpenAI names all rejected parameters in one sentence. pydantic writes one sentence for each.
    match = _LISTED.search(text)
    names = re.findall(r"\w+", match[1]) if match else []
    names += [name for each_match in _NAMED.finditer(text) for name in each_match.groups() if name]
    return tuple(name for name in dict.fromkeys(names) if name != first and name not in REQUIRED_PARAMETERS)[
        :MAX_FURTHER
    ]


def parse_json(headers: Mapping[str, str], body: bytes) -> Any | Failure:
    """Return the JSON value of a 200 response, or a failure.

    The failure is `bad_content_type` for a web page or text, and `bad_json` for invalid JSON.
    """
    start = body.lstrip()[:1]
    if start == b"<":
        page = translatable(WEB_PAGE, said=summarize(parse_error(body).message))
        return Failure(Fault.BAD_CONTENT_TYPE, page, 200)
    try:
        return read_json(body)
    except TooManyValuesError:
        return Failure(
            Fault.TOO_LARGE,
            translatable("the answer has more than %(limit)s JSON values", limit=MAX_ANSWER_VALUES),
            200,
        )
    except (ValueError, RecursionError) as error:
        kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
        if "json" not in kind.lower() and start and start not in b'{["-0123456789tfn':
            message = translatable("expected JSON, got %(type)s", type=summarize(kind or "plain text"))
            return Failure(Fault.BAD_CONTENT_TYPE, message, 200)
        reason = Translatable(error.msg) if isinstance(error, json.JSONDecodeError) else type(error).__name__
        return Failure(Fault.BAD_JSON, translatable("the body is not JSON: %(reason)s", reason=reason), 200)


def parse_object(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: float | None,
    unwrap: Callable[[Any], Any] = lambda value: value,
) -> dict[str, Any] | Failure:
    """Return the JSON object of a complete response, or the failure if it has none.

    `unwrap` removes the vendor's wrapper around the object.
    """
    if not 200 <= status < 300:
        return parse_failure(status, headers, body, now)
    value = parse_json(headers, body)
    if isinstance(value, Failure):
        return value
    value = unwrap(value)
    if isinstance(value, dict):
        return value
    return bad_shape(translatable("expected a JSON object, got %(type)s", type=type(value).__name__))


def bad_shape(message: Translatable) -> Failure:
    """Return the failure for a 200 response whose JSON does not match the protocol's response format."""
    return Failure(Fault.BAD_SHAPE, message, 200)
