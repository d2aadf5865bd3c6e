"""Gemini's API within the test process: what google-genai sends, what is refused, and what clients receive."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from django.test import Client
from google.genai import types

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.message import FilePart, Role, TextPart, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.stream import repair_outcome
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import (
    Answer,
    AnswerDetails,
    Delta,
    Failure,
    Finish,
    Media,
    Supplement,
    Target,
    ToolCallDelta,
    Usage,
)
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import BadRequestError, GatewayError
from routing_admin.gateway.gemini.events import GeminiChunks
from routing_admin.gateway.gemini.fields import read_fields
from routing_admin.gateway.gemini.parsing import needs_thread, parse
from routing_admin.gateway.gemini.rendering import blocked_json, response_json
from tests.cast import create_key, limit_agent
from tests.gateway.plane import PNG, logged, post
from tests.lab.recordings import RECORDINGS
from tests.lab.response_recordings import RESPONSE_RECORDINGS

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ORIGIN = "0123456789ab"
PICTURE = base64.urlsafe_b64encode(PNG).decode()
GENERATE = "/v1beta/models/{}:generateContent"
RECORDED = {
    "contents": [{"parts": [{"text": "hello"}], "role": "user"}],
    "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
    "safetySettings": [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}],
    "labels": {"team": "x"},
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 4.0,
        "candidateCount": 1,
        "maxOutputTokens": 9,
        "stopSequences": ["a"],
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "seed": 3,
        "responseMimeType": "application/json",
        "responseSchema": {
            "description": "An answer.",
            "properties": {
                "n": {"title": "N", "type": "INTEGER"},
                "names": {"items": {"type": "STRING"}, "nullable": True, "title": "Names", "type": "ARRAY"},
            },
            "property_ordering": ["names", "n"],
            "required": ["n"],
            "title": "A",
            "type": "OBJECT",
        },
        "responseModalities": ["TEXT"],
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
        "thinkingConfig": {"include_thoughts": True, "thinking_budget": 100},
    },
}
"""The body that google-genai 3.4 sends for a call with all of these options."""
CALL_PART = {"functionCall": {"id": "c1", "args": {"n": 2}, "name": "double"}}


def parse_call(body: dict[str, Any], *, stream: bool = False) -> ChatCall:
    return parse({**read_fields(body, ""), "model": "echo-text", "stream": stream}, lambda _: None)


def gemini_body(*parts: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    entries = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"contents": [{"role": role, "parts": entries}], **more}


def ask(key: str, body: Any, model: str = "echo-text", path: str = GENERATE) -> Any:
    return post("", body, path.format(model), **{"x-goog-api-key": key})


def refusal(body: dict[str, Any]) -> BadRequestError:
    with pytest.raises(BadRequestError) as refused:
        parse_call(body)
    return refused.value


def test_question_is_answered_with_a_candidate(key):
    answer = ask(key, gemini_body("Plan a picnic", systemInstruction={"parts": {"text": "Be brief."}}))
    body = answer.json()
    candidate = body["candidates"][0]
    assert "Plan a picnic" in candidate["content"]["parts"][0]["text"]
    assert (candidate["content"]["role"], candidate["finishReason"], candidate["index"]) == ("model", "STOP", 0)
    assert body["usageMetadata"]["candidatesTokenCount"] > 0
    assert (body["modelVersion"], answer.headers["x-routing-model"]) == ("echo-text", "echo-text")
    assert logged(answer.headers["x-request-id"]).outcome == "ok"


@pytest.mark.parametrize("headers", ["authorization", "x-api-key", "api-key", "x-goog-api-key"])
def test_key_is_read_from_every_header(key, headers):
    key_header = {headers: f"Bearer {key}" if headers == "authorization" else key}
    assert post("", gemini_body("hi"), GENERATE.format("echo-text"), **key_header).status_code == 200


def test_call_without_a_key_is_401_and_names_googles_header():
    answer = post("", gemini_body("hi"), f"{GENERATE.format('echo-text')}?key=AIzaSecret")
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (401, "UNAUTHENTICATED")
    assert "x-goog-api-key" in error["message"]
    assert "AIzaSecret" not in answer.content.decode()


def test_key_in_the_url_is_refused_in_googles_error_format(key):
    """A key in the URL is refused, since proxies and servers log URLs."""
    answer = post("", gemini_body("hi"), f"{GENERATE.format('echo-text')}?key={key}")
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert answer.json()["error"]["details"][0]["reason"] == "KEY_IN_URL"
    assert "x-goog-api-key" in answer.json()["error"]["message"]
    assert key not in answer.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/{}:generateContent",
        "/v1alpha/models/{}:generateContent",
        "/v1/v1beta/models/{}:generateContent",
        "/models/{}:generateContent",
        "//v1beta//models/{}:generateContent/",
        "/v1beta1/publishers/google/models/{}:generateContent",
    ],
)
def test_every_api_version_is_served(key, path):
    """From its third release on, google-genai uses `v1` by default. The gateway serves every version."""
    assert ask(key, gemini_body("hi"), path=path).json()["modelVersion"] == "echo-text"


def test_every_field_sent_by_google_genai_is_read():
    chat = parse_call(RECORDED).chat
    assert [(message.role, message.text) for message in chat.messages] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "hello"),
    ]
    assert (chat.temperature, chat.top_p, chat.max_tokens, chat.stop) == (0.5, 0.9, 9, ("a",))
    assert chat.response_format is not None
    schema = chat.response_format["json_schema"]["schema"]
    assert list(schema["properties"]) == ["names", "n"]
    assert schema["properties"]["names"] == {"type": ["array", "null"], "items": {"type": "string"}, "title": "Names"}
    assert chat.extra == {
        "top_k": 4,
        "seed": 3,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "modalities": ["text"],
        "reasoning_effort": "low",
        "reasoning_summary": "auto",
        "safetySettings": RECORDED["safetySettings"],
        "generationConfig.mediaResolution": "MEDIA_RESOLUTION_LOW",
        "generationConfig.thinkingConfig.thinkingBudget": 100,
    }
    assert chat.inner == ()


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"cachedContent": "cachedContents/1"}, "cachedContent"),
        ({"continuationToken": "x"}, "continuationToken"),
        ({"generationConfig": {"candidateCount": 9}}, "generationConfig.candidateCount"),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, "generationConfig.responseMimeType"),
        ({"generation_config": {"max_output_tokens": "many"}}, "generationConfig.maxOutputTokens"),
        (
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "DEEP"}}},
            "generationConfig.thinkingConfig.thinkingLevel",
        ),
        ({"contents": []}, "contents"),
        ({"contents": [{"role": "system", "parts": []}]}, "contents[0].role"),
        ({"contents": [{"parts": [{}]}]}, "contents[0].parts[0]"),
        ({"contents": [{"parts": [{"text": "x", "inlineData": {}}]}]}, "contents[0].parts[0]"),
        (
            {"contents": [{"parts": [{"inlineData": {"data": "%", "mimeType": "image/png"}}]}]},
            "contents[0].parts[0].inlineData.data",
        ),
        ({"contents": [{"parts": [{"fileData": {"fileUri": "artifact:0"}}]}]}, "contents[0].parts[0].fileData.fileUri"),
        ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "toolConfig.functionCallingConfig.mode"),
        ({"systemInstruction": {"parts": [{"inlineData": {}}]}}, "systemInstruction.parts[0]"),
    ],
)
def test_unsupported_field_is_refused_with_its_path(change, param):
    """Dropping an unsupported field would change the meaning of the call."""
    assert refusal({**gemini_body("hi"), **change}).param == param


@pytest.mark.parametrize("model", ["echo-text", "task:planning"])
def test_several_candidates_are_refused_unless_the_route_allows_them(key, model):
    body = {**gemini_body("hi"), "generation_config": {"candidate_count": 2}}
    answer = ask(key, body, model)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT")
    assert "generationConfig.candidateCount must be 1" in error["message"]
    violations = [detail["fieldViolations"] for detail in error["details"] if "fieldViolations" in detail]
    assert [violation["field"] for violation in violations[0]] == ["generationConfig.candidateCount"]
    assert logged(answer.headers["x-request-id"]).outcome == "unsupported_value"
    assert ask(key, body, model, GENERATE.replace("generateContent", "countTokens")).status_code == 200


def test_fields_without_an_equivalent_are_listed_as_dropped(key):
    """Google's own tools and their content parts are sent only to Gemini models."""
    body = gemini_body("hi", {"text": "x", "videoMetadata": {"fps": 1}}, {"executableCode": {"code": "1"}})
    body |= {
        "store": True,
        "tools": [{"google_search": {}, "functionDeclarations": {"name": "f", "response": {"type": "STRING"}}}],
    }
    body |= {"generationConfig": {"audioTimestamp": True}}
    assert parse_call(body).chat.inner == (
        *("tools[0].functionDeclarations[0].response", "contents[0].parts[1].videoMetadata"),
        *("generationConfig.audioTimestamp", "store"),
    )
    dropped = ask(key, body).headers["x-routing-dropped"]
    assert "tools[0].googleSearch" in dropped
    assert "contents[0].parts[2]" in dropped
    assert "generationConfig.audioTimestamp" in dropped


def test_functions_and_the_function_calling_config_are_read():
    """Functions may use either kind of schema.

    If a call is required and only one function is allowed, that function is selected by its name.
    """
    first = {"name": "a", "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "minItems": "1"}}}}
    second = {
        "name": "b",
        "parameters_json_schema": {"type": "object", "properties": {"some_name": {"type": "string"}}},
    }
    body = gemini_body("hi", tools=[{"functionDeclarations": [first, second]}])
    chat = parse_call(
        body | {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}}
    ).chat
    assert chat.tools[0].parameters == {"type": "object", "properties": {"n": {"type": "integer", "minItems": 1}}}
    assert (chat.tools[1].parameters, chat.tool_name) == (second["parameters_json_schema"], "b")
    chats = [
        parse_call(body | {"toolConfig": {"functionCallingConfig": {"mode": mode}}}).chat
        for mode in ("NONE", "ANY", "AUTO")
    ]
    assert [chat.tool_choice for chat in chats] == ["none", "required", "auto"]
    allowed = {"functionCallingConfig": {"mode": "VALIDATED", "allowed_function_names": ["a", "b"]}}
    chat = parse_call(body | {"tool_config": allowed}).chat
    assert (chat.tool_choice, chat.allowed_tools) == ("auto", ("a", "b"))


@pytest.mark.parametrize("names", [[], ["a"]])
def test_validated_mode_reaches_only_a_gemini_model(names):
    calling = {"mode": "VALIDATED", **({"allowedFunctionNames": names} if names else {})}
    body = gemini_body(
        "hi", tools=[{"functionDeclarations": [{"name": "a"}]}], toolConfig={"functionCallingConfig": calling}
    )
    chat = parse_call(body).chat
    gemini_request = PROTOCOLS["gemini"].encode(
        chat, Target("p", "https://llm.example/v1beta", "gemini-3-flash"), stream=False
    )
    assert gemini_request.payload["toolConfig"] == {"functionCallingConfig": calling}
    assert gemini_request.dropped_params == ()
    openai = PROTOCOLS["openai-responses"].encode(chat, Target("p", "https://llm.example/v1", "gpt-5"), stream=False)
    assert "auto" in repr(openai.payload["tool_choice"])
    assert openai.dropped_params == ("toolConfig.functionCallingConfig.mode",)


def test_function_calling_mode_without_functions_is_ignored():
    assert parse_call(gemini_body("hi", toolConfig={"functionCallingConfig": {"mode": "VALIDATED"}})).chat.extra == {}


def test_function_response_without_an_id_matches_the_first_open_call_of_its_name():
    """Gemini clients omit ids, so results are matched to calls by name and order.

    A response with the field `error` is a failed tool result.
    """
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("a", "b", "a")]
    answers = [
        {"functionResponse": {"name": name, "response": {key: name}}}
        for name, key in (("b", "result"), ("a", "error"), ("a", "x"))
    ]
    body = {
        "contents": [
            *gemini_body("go")["contents"],
            {"role": "model", "parts": calls},
            {"role": "user", "parts": answers},
        ]
    }
    _, calling, *results = parse_call(body).chat.messages
    ids = [call.id for call in calling.tool_calls]
    assert len(set(ids)) == 3
    assert [result.tool_call_id for result in results] == [ids[1], ids[0], ids[2]]
    assert [(result.text, result.is_error) for result in results] == [("b", False), ("a", True), ('{"x": "a"}', False)]


def test_files_are_read_from_every_kind_of_part():
    response = {"name": "shot", "response": {}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}]}
    urls = ["https://example.com/a.pdf", "https://www.youtube.com/watch?v=1"]
    body = gemini_body(
        {"inline_data": {"mime_type": "image/png", "data": PICTURE, "display_name": "a.png"}},
        *({"fileData": {"fileUri": url}} for url in urls),
        {"functionResponse": response},
    )
    chat = parse_call(body).chat
    picture, document, video = (part for part in chat.messages[0].parts if isinstance(part, FilePart))
    assert (picture.kind, picture.filename, picture.size) == (Kind.IMAGE, "a.png", len(PNG))
    assert (document.kind, document.mime_type, document.url) == (Kind.DOCUMENT, "application/pdf", urls[0])
    assert (video.kind, video.url) == (Kind.VIDEO, urls[1])
    assert isinstance(chat.messages[1].parts[1], FilePart)
    assert needs_thread(body, 100)


def test_artifact_is_found_by_its_reference_its_id_or_a_file_name(key):
    artifact = (
        Client()
        .post(
            "/api/v1/artifacts",
            json.dumps({"text": "# Notes", "filename": "notes.md"}),
            content_type="application/json",
            headers={"authorization": f"Bearer {key}"},
        )
        .json()
    )
    for uri in (artifact["ref"], artifact["id"], f"files/{artifact['id']}", f"file-{artifact['id']}"):
        answer = ask(key, gemini_body("Read this", {"fileData": {"fileUri": uri, "mimeType": "text/markdown"}}))
        assert answer.status_code == 200, answer.content
        assert "# Notes" in answer.json()["candidates"][0]["content"]["parts"][0]["text"]


def test_image_for_a_text_model_is_described(key):
    answer = ask(key, gemini_body({"inlineData": {"mimeType": "image/png", "data": PICTURE}}))
    assert answer.headers["x-routing-adaptation"] == "image=described"


def test_reasoning_of_every_vendor_is_preserved_in_a_signature():
    """google-genai sends back the signature, which is URL-safe base64."""
    thoughts = (
        ReasoningBlock(ThoughtForm.TEXT, "Hm.", "abc=", 0, 0, dialect="anthropic-claude-v1"),
        ReasoningBlock(ThoughtForm.ENCRYPTED, "", "xyz", 2, 0, dialect="google-gemini-v1"),
    )
    answer = Answer("So", (ToolCall("c1", "f", "{}", "sig+/=="), ToolCall("c2", "g", "{}")), "Hm.", thoughts=thoughts)
    written = types.GenerateContentResponse.model_validate(
        response_json(answer, parse_call(gemini_body("hi")), "m", ORIGIN)
    )
    assert written.candidates
    assert written.candidates[0].content
    content = json.loads(written.candidates[0].content.model_dump_json(exclude_none=True))
    turn = parse_call({"contents": [*gemini_body("go")["contents"], content]}).chat.messages[1]
    assert (turn.text, [call.id for call in turn.tool_calls]) == ("So", ["c1", "c2"])
    assert [(thought.proof, thought.offset, thought.origin) for thought in turn.thoughts] == [
        ("abc=", 0, ORIGIN),
        ("xyz", 2, ORIGIN),
    ]
    assert [(call.signature, call.origin) for call in turn.tool_calls] == [("sig+/==", ORIGIN), (None, "")]


def test_signature_issued_by_gemini_is_kept():
    parts = [{"text": "a", "thoughtSignature": "cHJvb2Y="}, {**CALL_PART, "thoughtSignature": "YWJj"}]
    turn = parse_call({"contents": [*gemini_body("go")["contents"], {"role": "model", "parts": parts}]}).chat.messages[
        1
    ]
    assert [(thought.proof, thought.origin) for thought in turn.thoughts] == [("cHJvb2Y=", "")]
    assert (turn.tool_calls[0].signature, turn.tool_calls[0].origin) == ("YWJj", "")


def test_reasoning_text_appears_only_if_requested():
    answer = Answer("Yes", reasoning="Hm.")
    for includes_thoughts in (False, True):
        call = parse_call(
            gemini_body("hi", generationConfig={"thinkingConfig": {"includeThoughts": includes_thoughts}})
        )
        parts = response_json(answer, call, "m", ORIGIN)["candidates"][0]["content"]["parts"]
        assert parts == ([{"text": "Hm.", "thought": True}] if includes_thoughts else []) + [{"text": "Yes"}]
        streamed = GeminiChunks(model="m", origin=ORIGIN, shows_thoughts=includes_thoughts).write_delta(
            Delta("", "Hm.")
        )
        assert bool(streamed) is includes_thoughts


def test_usage_and_finish_reason_have_geminis_names():
    """`candidatesTokenCount` excludes reasoning tokens, and Gemini's own finish reason is kept."""
    usage = Usage(10, 7, 17, cached_tokens=4, reasoning_tokens=5, tool_tokens=2, prompt_image_tokens=3)
    reasons = [
        ("stop", None),
        ("length", None),
        ("tool_calls", None),
        ("content_filter", "RECITATION"),
        ("content_filter", "refusal"),
    ]
    finishes = []
    for reason, vendor_reason in reasons:
        answer = Answer("x", finish_reason=reason, usage=usage, details=AnswerDetails(vendor_reason))
        written = response_json(answer, parse_call(gemini_body("hi")), "m", ORIGIN)
        finishes.append(written["candidates"][0]["finishReason"])
    assert finishes == ["STOP", "MAX_TOKENS", "STOP", "RECITATION", "SAFETY"]
    assert written["usageMetadata"] == {
        "promptTokenCount": 8,
        "candidatesTokenCount": 2,
        "totalTokenCount": 17,
        "cachedContentTokenCount": 4,
        "thoughtsTokenCount": 5,
        "toolUsePromptTokenCount": 2,
        "promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 3}],
    }


def test_generated_media_have_data_and_artifact():
    """Generated media arrive with their data and a reference to their artifact. Citation offsets are in bytes."""
    cited = {
        "type": "url_citation",
        "url_citation": {"url": "https://a", "title": "A", "start_index": 0, "end_index": 2},
    }
    media = Media(Kind.IMAGE, "image/png", PICTURE, artifact_id="a1")
    answer = Answer("你好", media=(media,), annotations=(cited,))
    candidate = response_json(answer, parse_call(gemini_body("hi")), "m", ORIGIN)["candidates"][0]
    assert candidate["content"]["parts"][1]["partMetadata"] == {"artifact": f"{REF_PREFIX}a1"}
    supports = candidate["groundingMetadata"]["groundingSupports"]
    assert supports == [{"segment": {"startIndex": 0, "endIndex": 6, "text": "你好"}, "groundingChunkIndices": [0]}]


def test_streamed_function_call_is_sent_as_one_part_when_complete():
    chunks = GeminiChunks(model="m", origin=ORIGIN)
    written = [
        chunks.write_delta(Delta(tool_calls=(ToolCallDelta(0, "c0", "f", '{"a"'),))),
        chunks.write_delta(Delta(tool_calls=(ToolCallDelta(1, "c1", "g", "{}"),))),
        chunks.write_delta(Delta(tool_calls=(ToolCallDelta(0, arguments=": 1}"),))),
        chunks.write_finish(Finish("tool_calls")),
    ]
    assert written[:2] == [b"", b""]
    parts = json.loads(written[2].removeprefix(b"data: "))["candidates"][0]["content"]["parts"]
    assert [part["functionCall"] for part in parts] == [
        {"id": "c0", "name": "f", "args": {"a": 1}},
        {"id": "c1", "name": "g", "args": {}},
    ]
    assert json.loads(written[3].removeprefix(b"data: "))["candidates"][0]["finishReason"] == "STOP"


def test_errors_have_googles_format(key):
    unknown = ask(key, gemini_body("hi"), "nothing").json()["error"]
    assert (unknown["code"], unknown["status"], unknown["details"][0]["reason"]) == (
        404,
        "NOT_FOUND",
        "MODEL_NOT_FOUND",
    )
    wrong = ask(key, {}).json()["error"]
    assert (wrong["status"], wrong["details"][1]["fieldViolations"][0]["field"]) == ("INVALID_ARGUMENT", "contents")
    failed = ask(key, gemini_body("hi"), "echo/echo-503").json()["error"]
    assert (failed["code"], failed["status"]) == (502, "UNAVAILABLE")
    assert failed["details"][-1]["value"]["attempts"][0]["statusCode"] == 503
    assert ask("ra_wrong", gemini_body("hi")).json()["error"]["status"] == "UNAUTHENTICATED"
    assert (
        ask(create_key("text-agent", scopes=["registry:read"]), gemini_body("hi")).json()["error"]["status"]
        == "PERMISSION_DENIED"
    )
    response = Client().get(GENERATE.format("echo-text"), headers={"x-goog-api-key": key})
    assert (response.status_code, response.json()["error"]["status"]) == (405, "UNIMPLEMENTED")
    embed = post(key, {}, "/v1beta/models/x:embedContent")
    assert (embed.status_code, "/v1/embeddings" in embed.json()["error"]["message"]) == (404, True)


def test_block_reason_from_gemini_is_kept():
    reasons = [
        blocked_json(GatewayError(400, "content_filter", message))["promptFeedback"]["blockReason"]
        for message in ("the prompt was blocked: PROHIBITED_CONTENT", "the prompt was blocked: SAFETY", "Refused.")
    ]
    assert reasons == ["PROHIBITED_CONTENT", "SAFETY", "OTHER"]


def test_models_are_listed_in_geminis_format(key):
    headers = {"x-goog-api-key": key}
    listed = Client().get("/v1beta/models", headers=headers).json()["models"]
    assert listed == Client().get("/v1/models", headers=headers).json()["models"]
    first = Client().get("/v1beta/models?pageSize=2", headers=headers).json()
    second = Client().get(f"/v1beta/models?pageSize=2&pageToken={first['nextPageToken']}", headers=headers).json()
    assert [*first["models"], *second["models"]] == listed[:4]
    assert Client().get("/v1beta/models?pageSize=2&pageToken=next", headers=headers).json() == first
    model = Client().get("/v1beta/models/task:planning", headers=headers).json()
    assert (model["name"], model["supportedGenerationMethods"]) == (
        "models/task:planning",
        ["generateContent", "countTokens"],
    )
    assert Client().get("/v1/models/nothing", headers=headers).status_code == 404
    assert Client().get("/v1beta/models/nothing", headers=headers).json()["error"]["status"] == "NOT_FOUND"
    assert "data" in Client().get("/v1/models", headers={"x-api-key": key}).json()


def test_token_count_grows_with_the_contents(key):
    path = "/v1beta/models/{}:countTokens"
    short = ask(key, gemini_body("x"), path=path)
    long = ask(key, {"generateContentRequest": gemini_body("many words " * 100)}, path=path)
    assert 0 < short.json()["totalTokens"] < long.json()["totalTokens"]
    assert ask(key, {}, path=path).json()["error"]["status"] == "INVALID_ARGUMENT"


def test_numbers_of_contents_parts_and_functions_are_limited_by_settings(key, settings):
    settings.MAX_MESSAGES, settings.MAX_PARTS, settings.MAX_TOOLS = 4, 4, 2
    content, three_parts = gemini_body("x")["contents"][0], gemini_body("x", "y", "z")["contents"][0]
    nested = {"functionResponse": {"name": "f", "response": {}, "parts": [{"text": "x"}] * 4}}
    functions = [{"name": f"f{number}"} for number in range(3)]
    for body, setting in (
        ({"contents": [content] * 5}, "MAX_MESSAGES"),
        ({"contents": [three_parts, three_parts]}, "MAX_PARTS"),
        (gemini_body(nested), "MAX_PARTS"),
        (gemini_body("x", systemInstruction={"parts": [{"text": "x"}] * 5}), "MAX_PARTS"),
        (gemini_body("x", tools=[{"functionDeclarations": functions}]), "MAX_TOOLS"),
    ):
        error = ask(key, body).json()["error"]
        assert (error["status"], f"ROUTING_ADMIN_{setting}" in error["message"]) == ("INVALID_ARGUMENT", True)
    assert ask(key, gemini_body("x", "y", tools=[{"functionDeclarations": functions[:2]}])).status_code == 200


def test_model_that_the_agent_may_not_use_is_refused(key):
    limit_agent(models=["task:planning"])
    error = ask(key, gemini_body("hi"), "echo-vision").json()["error"]
    assert (error["status"], error["details"][0]["reason"]) == ("PERMISSION_DENIED", "MODEL_NOT_ALLOWED")


def test_labels_and_task_type_are_read_from_the_body(key):
    """`labels` is a field of Gemini's API. `taskType` and `language` are the gateway's fields, as in every API."""
    answer = ask(key, gemini_body("hi", labels={"team": "red"}, taskType="planning", language="en"), "whatever")
    row = logged(answer.headers["x-request-id"])
    assert (row.task_type, row.team) == ("planning", "red")


def test_idempotency_key_replays_the_same_call_and_refuses_another(key):
    stream = "/v1beta/models/{}:streamGenerateContent"

    def once(path: str, model: str = "echo-text") -> Any:
        return post(key, gemini_body("hi"), path.format(model), **{"idempotency-key": "k"})

    first, replay = once(GENERATE), once(GENERATE)
    assert first.json() == replay.json()
    assert [once(path, model).status_code for path, model in ((GENERATE, "echo-vision"), (stream, "echo-text"))] == [
        422,
        422,
    ]


def all_recordings() -> list[tuple[str, Any]]:
    by_vendor = [(protocol, recording) for vendors in RECORDINGS.values() for protocol, recording in vendors.items()]
    return [*by_vendor, *(("openai-responses", recording) for recording in RESPONSE_RECORDINGS.values())]


@pytest.mark.parametrize(
    ("protocol", "recording"), all_recordings(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_answer_from_any_protocol_is_valid_for_google_genais_types(protocol, recording):
    """Every complete response and every chunk is valid for google-genai's types, which forbid unknown fields."""
    call = parse_call(gemini_body("hi", generationConfig={"thinkingConfig": {"includeThoughts": True}}))
    body = json.dumps(recording.whole).encode()
    answer = repair_outcome(PROTOCOLS[protocol].decode(200, {}, body), body)
    if isinstance(answer, Answer):
        types.GenerateContentResponse.model_validate(response_json(answer, call, "m", ORIGIN))
    chunks, decoder = GeminiChunks(model="m", origin=ORIGIN, shows_thoughts=True), PROTOCOLS[protocol].decoder()
    written = b""
    sent = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in recording.events)
    for event in (*decoder.feed(sent), *decoder.close()):
        if isinstance(event, Delta):
            written += chunks.write_delta(event)
        elif isinstance(event, Supplement):
            written += chunks.write_media(event.media) + chunks.write_annotations(event.annotations)
        elif not isinstance(event, Failure):
            written += chunks.write_finish(event)
    for line in written.split(b"\r\n\r\n")[:-1]:
        types.GenerateContentResponse.model_validate_json(line.removeprefix(b"data: "))


def test_single_text_part_without_a_list_is_a_user_message():
    chat = parse_call({"contents": {"parts": {"text": "hi"}}}).chat
    assert chat.messages[0].parts == (TextPart("hi"),)
