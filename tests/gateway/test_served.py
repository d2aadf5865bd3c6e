"""/v1 over real sockets: the official client, streams, broken streams, disconnects and the log."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator

import openai
import pytest

from tests.gateway.plane import PNG, chat_body, image
from tests.gateway.serving import Server, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("served")) as server:
        yield server


HELLO = [{"role": "user", "content": "hello"}]


def scenario(server: Server, **script: object) -> None:
    """Give the fault lab a new script, and clear the requests that it received under the old script."""
    server.lab.play(script)  # type: ignore[arg-type]


def model(step: str) -> str:
    return f"one/fault:{step}"


@pytest.mark.smoke
def test_official_client_gets_equal_complete_and_streamed_answers(client):
    whole = client.chat.completions.create(model="task:planning", messages=HELLO)
    assert "hello" in (whole.choices[0].message.content or "")
    assert whole.usage
    assert whole.usage.total_tokens > 0
    pieces = list(
        client.chat.completions.create(
            model="task:planning", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == whole.choices[0].message.content
    assert pieces[-1].usage == whole.usage
    assert pieces[-2].choices[0].finish_reason == "stop"


async def test_asynchronous_official_client_gets_equal_complete_and_streamed_answers(server):
    async with openai.AsyncOpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0) as client:
        whole = await client.chat.completions.create(model="auto", messages=HELLO)
        stream = await client.chat.completions.create(model="auto", messages=HELLO, stream=True)
        text = "".join([piece.choices[0].delta.content or "" async for piece in stream])
    assert text == whole.choices[0].message.content


def test_uploaded_file_can_be_used_by_its_id(client, server):
    text_file = client.files.create(file=("notes.txt", b"The password is swordfish."), purpose="user_data")
    part = {"type": "file", "file": {"file_id": text_file.id}}
    answer = client.chat.completions.create(model="auto", messages=[{"role": "user", "content": [part]}])
    assert "swordfish" in answer.choices[0].message.content
    picture = client.files.create(file=("dot.png", PNG), purpose="vision")
    part = {"type": "file", "file": {"file_id": picture.id}}
    answer = client.chat.completions.create(model="auto", messages=[{"role": "user", "content": [part]}])
    assert picture.id in answer.choices[0].message.content
    assert client.files.content(picture.id).read() == PNG
    assert {text_file.id, picture.id} <= {file.id for file in client.files.list()}
    assert client.models.retrieve("task:planning").id == "task:planning"
    assert client.files.delete(text_file.id).deleted


def test_fallback_receives_the_image_and_the_timeline_shows_the_delivery(client, server):
    raw = client.chat.completions.with_raw_response.create(**chat_body(image(), model="task:design"))
    assert raw.headers["x-routing-attempts"] == "2"
    assert raw.headers["x-routing-adaptation"] == "image=native"
    timeline = server.timeline(raw.headers["x-request-id"])
    assert [attempt["statusCode"] for attempt in timeline["attempts"]] == [503, 200]
    assert [attempt["deliveries"][0]["outcome"] for attempt in timeline["attempts"]] == ["native", "native"]


def test_described_inline_image_has_a_reference_to_its_artifact(client):
    texts = {
        client.chat.completions.create(**chat_body(image(), model="auto")).choices[0].message.content for _ in (1, 2)
    }
    assert len(texts) == 1
    ref = next(word for word in texts.pop().split() if word.startswith("artifact:"))
    assert client.files.content(ref).read() == PNG


def test_token_limit_is_sent_under_the_name_that_the_provider_accepts(client, server):
    """A provider that refuses `max_tokens` is called again with `max_completion_tokens`.

    Later calls use that name immediately, and the limit is never dropped.
    """
    scenario(server)
    request = {"model": model("parameter:param=max_tokens"), "messages": HELLO}
    whole = client.chat.completions.create(**request, max_tokens=7)
    assert whole.choices[0].message.content == "You said: hello"
    pieces = list(client.chat.completions.create(**request, max_completion_tokens=8, stream=True))
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices) == "You said: hello"
    bodies = [received.json for received in server.lab.requests]
    assert [body.get("max_tokens") for body in bodies] == [7, None, None]
    assert [body.get("max_completion_tokens") for body in bodies] == [None, 7, 8]


@pytest.mark.requirement("MMR-P8", "MMR-E4")
def test_call_falls_back_past_failing_providers(client, server):
    scenario(server, one=["http_503"], two=["http_429"], three=["say:from three"])
    raw = client.chat.completions.with_raw_response.create(model="task:chain", messages=HELLO)
    assert raw.parse().choices[0].message.content == "from three"
    assert raw.headers["x-routing-provider"] == "three"
    timeline = server.timeline(raw.headers["x-request-id"])
    assert [attempt["statusCode"] for attempt in timeline["attempts"]] == [503, 429, 200]


@pytest.mark.requirement("MMR-P10")
@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        ("http_400", 400, "upstream_400"),
        ("http_401", 502, "upstream_auth"),
        ("http_403", 502, "upstream_forbidden"),
        ("http_404", 404, "upstream_404"),
        ("http_422", 422, "upstream_422"),
    ],
)
def test_fault_without_fallback_reaches_the_caller_with_its_status(client, server, step, status, code):
    """A 401 from the provider does not concern the agent's key."""
    scenario(server, one=step)
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="task:chain", messages=HELLO)
    assert caught.value.status_code == status
    assert caught.value.code == code
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.headers["x-routing-provider"] == "one"
    assert caught.value.response.headers["x-routing-model"] == "lab"
    assert len(caught.value.body["attempts"]) == 1
    assert server.timeline(caught.value.response.headers["x-request-id"])["outcome"] == code


def test_chain_of_only_rate_limited_candidates_returns_429(client, server):
    scenario(server, one="http_429:retry_after=30")
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model=model("http_429:retry_after=30"), messages=HELLO)
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 30
    assert caught.value.response.headers["x-should-retry"] == "false"


def test_stream_that_fails_before_content_falls_back(client, server):
    scenario(server, one=["error_event_first"], two=["say:from two"])
    pieces = list(client.chat.completions.create(model="task:chain", messages=HELLO, stream=True))
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices) == "from two"


@pytest.mark.parametrize("step", ["no_finish", "reset_mid_body", "error_event_mid"])
def test_broken_stream_ends_with_an_error_event(server, step):
    request_id, events = stream(server, {"model": model(step), "messages": HELLO, "stream": True})
    assert "[DONE]" not in events
    last = json.loads(events[-1])
    assert last["error"]["code"] in ("stream_truncated", "stream_broken")
    assert last["error"]["request_id"] == request_id
    assert not any('"finish_reason":"stop"' in event for event in events)
    assert server.timeline(request_id)["attempts"][0]["outcome"] in ("stream_truncated", "stream_broken")


def test_disconnect_before_the_answer_closes_the_upstream_within_a_second(server):
    server.lab.requests.clear()
    connection = ask(server, {"model": model("silent"), "messages": HELLO}, "left-early")
    assert server.lab.wait_until(lambda: bool(server.lab.requests))
    disconnected_at = time.monotonic()
    connection.close()
    assert server.lab.wait_until(lambda: server.lab.requests[0].closed_at is not None, 5)
    assert server.lab.requests[0].closed_at - disconnected_at < 1
    timeline = server.timeline("left-early")
    assert (timeline["outcome"], timeline["status"]) == ("client_cancelled", 499)
    assert [attempt["outcome"] for attempt in timeline["attempts"]] == ["client_cancelled"]


def test_disconnect_during_a_stream_closes_the_upstream_within_a_second(server):
    server.lab.requests.clear()
    connection = ask(server, {"model": model("stall"), "messages": HELLO, "stream": True})
    response = connection.getresponse()
    request_id = response.headers["x-request-id"]
    assert response.readline().startswith(b"data: ")
    disconnected_at = time.monotonic()
    response.close()
    connection.close()
    assert server.lab.wait_until(lambda: server.lab.requests[0].closed_at is not None, 5)
    assert server.lab.requests[0].closed_at - disconnected_at < 1
    assert server.timeline(request_id)["outcome"] == "client_cancelled"


@pytest.mark.parametrize("step", ["silent", "stall_first", "stall", "slow_stream:seconds=30", "endless"])
@pytest.mark.parametrize("provider", ["one", "by-openai-responses", "by-anthropic", "by-gemini"])
def test_disconnected_call_does_not_affect_later_calls(client, server, provider, step):
    scenario(server)

    def connection_of_answered_call(text: str) -> int:
        request = {"model": f"{provider}/fault:ok", "messages": [{"role": "user", "content": text}]}
        whole = client.chat.completions.create(**request).choices[0].message.content
        pieces = client.chat.completions.create(**request, stream=True)
        streamed = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
        assert whole == streamed == f"You said: {text}"
        return int(server.lab.requests[-1].connection)

    kept_connection = connection_of_answered_call("before")
    connection = ask(server, {"model": f"{provider}/fault:{step}", "messages": HELLO, "stream": True})
    assert server.lab.wait_until(lambda: len(server.lab.requests) == 3)
    disconnected = server.lab.requests[2]
    if step in ("stall", "endless"):
        assert connection.getresponse().readline().startswith(b"data: ")
    connection.close()
    assert server.lab.wait_until(lambda: disconnected.done, 5)
    # The call that disconnected used the kept-alive connection.
    assert disconnected.connection == kept_connection
    new_connection = connection_of_answered_call("after")
    assert new_connection != disconnected.connection
    assert connection_of_answered_call("again") == new_connection


def test_image_for_a_text_model_is_sent_as_a_reference(client, server):
    scenario(server, one="ok")
    client.chat.completions.create(**chat_body(image(), model="one/lab"))
    assert base64.b64encode(PNG) not in server.lab.requests[-1].body
    assert b"artifact:" in server.lab.requests[-1].body


@pytest.mark.parametrize("provider", ["one", "by-anthropic", "by-gemini"])
def test_every_protocols_answer_has_openais_format(client, server, provider):
    scenario(server, **{provider: "say:good morning"})
    whole = client.chat.completions.create(model=f"{provider}/lab", messages=HELLO)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("good morning", "stop")
    pieces = list(client.chat.completions.create(model=f"{provider}/lab", messages=HELLO, stream=True))
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "good morning"
    assert pieces[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("provider", ["one", "by-anthropic", "by-gemini"])
def test_tool_call_and_its_result_are_passed_on(client, server, provider):
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}
    scenario(server, **{provider: "tool_call"})
    request = {"model": f"{provider}/lab", "messages": HELLO, "tools": [tool]}
    message = client.chat.completions.create(**request).choices[0].message
    call = message.tool_calls[0]
    json.loads(call.function.arguments)
    pieces = list(client.chat.completions.create(**request, stream=True))
    streamed = [part for piece in pieces for part in piece.choices[0].delta.tool_calls or ()]
    assert streamed[0].function.name == call.function.name
    assert json.loads("".join(part.function.arguments or "" for part in streamed)) == json.loads(
        call.function.arguments
    )
    assert pieces[-1].choices[0].finish_reason == "tool_calls"
    scenario(server, **{provider: "say:thank you"})
    result = {"role": "tool", "tool_call_id": call.id, "content": "found"}
    history = [*HELLO, message.model_dump(exclude_none=True), result]
    answer = client.chat.completions.create(**(request | {"messages": history}))
    assert answer.choices[0].message.content == "thank you"
    assert b"found" in server.lab.requests[-1].body


def test_disconnect_from_the_agents_api_ends_the_call(server):
    scenario(server, one="silent")
    body = {"prompt": "hello", "taskType": "chain"}
    connection = ask(server, body, "left-send", "/api/v1/llm/send")
    assert server.lab.wait_until(lambda: bool(server.lab.requests))
    disconnected_at = time.monotonic()
    connection.close()
    assert server.lab.wait_until(lambda: server.lab.requests[0].closed_at is not None, 5)
    assert server.lab.requests[0].closed_at - disconnected_at < 1
    assert server.timeline("left-send")["outcome"] == "client_cancelled"


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("evil.example", 400)])
def test_chat_call_is_served_only_for_allowed_hosts(server, host, status):
    """Chat calls run outside Django's middleware, so the gateway checks the Host header itself."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    headers = {"authorization": f"Bearer {server.key}", "host": host}
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": "auto", "messages": HELLO}), headers)
    response = connection.getresponse()
    body = response.read()
    assert (response.status, response.headers["x-content-type-options"]) == (status, "nosniff")
    assert int(response.headers["content-length"]) == len(body)
    assert response.headers["x-request-id"]
    assert ("error" in json.loads(body)) == (status == 400)
    connection.close()


def ask(
    server: Server, body: object, request_id: str = "", path: str = "/v1/chat/completions"
) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    if request_id:
        headers["x-request-id"] = request_id
    connection.request("POST", path, json.dumps(body), headers)
    return connection


def stream(server: Server, body: object) -> tuple[str, list[str]]:
    connection = ask(server, body)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    events = [block.removeprefix("data: ") for block in response.read().decode().split("\n\n") if block]
    connection.close()
    return response.headers["x-request-id"], events
