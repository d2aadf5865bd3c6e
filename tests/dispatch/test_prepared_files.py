"""Files are prepared for each candidate: the preview equals what is sent, and nothing is lost silently."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import build_file_part, byte_store, open_artifact
from capabilities.actors import SYSTEM
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared
from capabilities.core.delivery.obstacles import ReasonCode
from capabilities.core.wire import Answer, Failure, Fault
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.core.planning.language import inject_directive
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.preview import Previewer, preview, request_for
from routing_admin.dispatch.send import Dispatch, process_run_context
from routing_admin.models import TaskRoute
from routing_admin.upstream import run_sync
from tests.gateway.plane import PNG, chat_body, image, logged, post

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]


def docx() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("word/document.xml", "<w:document/>")
    return buffer.getvalue()


SAMPLES = {
    "dot.png": (PNG, "image/png"),
    "notes.txt": ("今天天气很好。\n".encode("gb18030") * 20, "text/plain"),
    "report.pdf": (b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n", "application/pdf"),
    "song.mp3": (
        b"ID3\x04\0\0\0\0\0\0" + b"\xff\xfb\x90\0" + b"\0" * 413 + b"\xff\xfb\x90\0" + b"\0" * 413,
        "audio/mpeg",
    ),
    "letter.docx": (docx(), ""),
    "page.html": (b"<!doctype html><html><body><h1>Sum</h1><p>42</p></body></html>", "text/html"),
    "data.bin": (bytes(range(256)) * 4, "application/octet-stream"),
}


@dataclass
class ScriptedUpstream:
    """A transport that returns scripted outcomes and records every payload."""

    outcomes: list[Answer | Failure] = field(default_factory=list)
    payloads: list[Any] = field(default_factory=list)

    async def call(self, prepared: Prepared, to: ModelEndpoint, timeouts: object, proxy: str) -> Answer | Failure:
        self.payloads.append(prepared.request.elide())
        return self.outcomes.pop(0) if self.outcomes else Answer("ok")

    async def open(self, *_: object) -> Failure:
        raise AssertionError("nothing is streamed here")


def artifact(name: str) -> Artifact:
    data, declared = SAMPLES[name]
    return store_bytes(SYSTEM, data, owner="text-agent", filename=name, declared=declared)


def test_preview_shows_html_source_only_for_services_with_the_html_source_option(key):
    """Services that receive a web page in different forms do not share an adapted request."""
    previewer = Previewer(artifact("page.html"))
    endpoint = previewer.endpoints[0]
    coder = replace(endpoint, reader=replace(endpoint.reader, html_source=True))
    words, source = (delivery.text or "" for delivery in previewer.preview([endpoint, coder]).deliveries)
    assert words.endswith("# Sum\n42")
    assert "<h1>Sum</h1>" in source


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_previewed_payload_equals_the_payload_sent(key, name):
    row = artifact(name)
    TaskRoute.objects.filter(task_type="default").update(temperature=0.3, max_tokens=77)
    snapshot.refresh()
    state = snapshot.current()
    shown = {delivery.service_id: delivery for delivery in preview(row).deliveries}
    assert set(shown) == {service.id for service in state.configuration.services}
    for service in state.configuration.services:
        route = replace(
            state.configuration.route("default"), candidates=(CandidateSpec(service.provider, service.model),)
        )
        planned = plan_request(state, route, request_for(open_artifact(row)), unusable={}, service=service)
        transport = ScriptedUpstream()
        dispatch = Dispatch(planned, transport)
        run_sync(dispatch.answer())
        assert transport.payloads[0] == shown[service.id].payload
        assert "请使用中文回答。" in str(transport.payloads[0]["messages"][0])
        assert (transport.payloads[0]["temperature"], transport.payloads[0]["max_tokens"]) == (0.3, 77)
        assert dispatch.prepared[0].deliveries[0].delivery.outcome is shown[service.id].outcome


def test_preview_gives_the_reason_why_no_model_describes_a_file(key):
    """The reason is shown only if the route's policy asks a model for descriptions of files."""
    row, state = artifact("dot.png"), snapshot.current()
    reasons = {}
    for policy in ("describe", "describer"):
        route = RouteSpec("draft", (CandidateSpec("echo", "echo-text"),), content={"policy": policy})
        planned = plan_request(state, route, request_for(open_artifact(row)), unusable={})
        (shown,) = Previewer(row).preview([planned.endpoint(0)]).deliveries
        reasons[policy] = shown.not_described and shown.not_described.code
    assert reasons == {"describe": None, "describer": ReasonCode.NO_DESCRIBER}


def test_retry_after_a_capability_mismatch_describes_the_image(key):
    """Only this candidate gets a description of the image. Other candidates would still receive the image itself."""
    state, row = snapshot.current(), artifact("dot.png")
    route = RouteSpec("draft", (CandidateSpec("echo", "echo-vision"),))
    transport = ScriptedUpstream([Failure(Fault.CAPABILITY_MISMATCH, "no images", 400, param="vision")])
    done = run_sync(Dispatch(plan_request(state, route, request_for(open_artifact(row))), transport).answer())
    assert "<" in json.dumps(transport.payloads[0])
    assert f"{len(PNG)} bytes" in json.dumps(transport.payloads[0])
    assert row.ref in json.dumps(transport.payloads[1])
    assert done.attempts[0].adaptation == "image=described"


def test_native_only_route_skips_a_candidate_that_needs_a_description(key):
    """The skipped attempt states the reason, nothing is sent, and the next candidate that reads the file answers."""
    state, row = snapshot.current(), artifact("dot.png")
    chain = (CandidateSpec("echo", "echo-text"), CandidateSpec("echo", "echo-vision"))
    route = RouteSpec("draft", chain, content={"policy": "native_only"})
    transport = ScriptedUpstream()
    done = run_sync(Dispatch(plan_request(state, route, request_for(open_artifact(row))), transport).answer())
    assert [attempt.outcome for attempt in done.attempts] == ["skipped_cannot_read", "ok"]
    assert "vision" in (done.attempts[0].error or "")
    assert [payload["model"] for payload in transport.payloads] == ["echo-vision"]


def test_inline_media_becomes_an_artifact_only_if_the_candidate_gets_a_description(key):
    """A model that reads images needs no reference. For other models, the image is stored once per agent."""
    post(key, chat_body(image(), model="echo-vision"))
    assert not Artifact.objects.exists()
    first, second = post(key, chat_body(image(), model="echo-text")), post(key, chat_body(image(), model="echo-text"))
    row = Artifact.objects.get()
    assert row.owner == "text-agent"
    for response in (first, second):
        assert row.ref in response.json()["choices"][0]["message"]["content"]
        assert base64.b64encode(PNG).decode() not in response.content.decode()


def test_payload_depends_only_on_the_request_and_the_candidate(key):
    """A payload depends neither on an earlier candidate's payload nor on that candidate's failure."""
    state = snapshot.current()
    chat = inject_directive(request_for(open_artifact(artifact("dot.png"))), "")
    text, vision = CandidateSpec("echo", "echo-text"), CandidateSpec("echo", "echo-vision")
    payloads = {}
    for chain in ((text, vision), (vision, text)):
        transport = ScriptedUpstream([Failure(Fault.HTTP_529, "overloaded", 529)])
        route = RouteSpec("draft", chain)
        run_sync(Dispatch(plan_request(state, route, chat), transport).answer())
        for payload in transport.payloads:
            payloads.setdefault(payload["model"], []).append(payload)
        renew(process_run_context)
    assert all(first == second for first, second in payloads.values())


def test_file_with_missing_bytes_is_described_and_the_request_is_answered(key):
    """The description says that the file cannot be read, and keeps its reference (MCR-E4)."""
    row = artifact("dot.png")
    part = build_file_part(row)
    assert part.unreadable is None
    byte_store().delete(row.sha256)
    response = post(key, chat_body({"type": "file", "file": {"file_id": row.ref}}, model="echo-vision"))
    text = response.json()["choices"][0]["message"]["content"]
    assert "文件处理失败" in text
    assert row.ref in text
    assert response.headers["x-routing-adaptation"] == "image=described"


def test_description_names_send_message_only_if_the_request_has_the_tool(key):
    """Without the tool `send_message`, the description only lists the agents that can process the image."""
    tool = {"type": "function", "function": {"name": "send_message", "parameters": {"type": "object"}}}
    plain = post(key, chat_body(image(), model="echo-text")).json()["choices"][0]["message"]["content"]
    tooled = post(key, chat_body(image(), model="echo-text", tools=[tool])).json()["choices"][0]["message"]["content"]
    assert "send_message" not in plain
    assert "vision-agent" in plain
    assert "send_message" in tooled


def test_image_in_a_tool_result_is_sent_to_a_vision_model_with_its_file_name(key):
    """A line `工件内容 (…):` precedes the image of a tool result. The log records the delivery."""
    result = {
        "contentType": "image",
        "routing": "image_url",
        "imageUrl": image(),
        "metadata": {"id": "xyz", "filename": "dot.png"},
    }
    call = {"id": "c1", "type": "function", "function": {"name": "get_artifact", "arguments": "{}"}}
    body = {
        "model": "echo-vision",
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": json.dumps(result)},
        ],
    }
    response = post(key, body)
    assert "工件内容 (dot.png):" in response.json()["choices"][0]["message"]["content"]
    outcome = response.headers["x-routing-adaptation"]
    assert outcome in ("image=native", "image=hoisted")
    row = logged(response.headers["x-request-id"])
    assert row.attempts.get().deliveries[0]["filename"] == "dot.png"
    assert row.adaptation == outcome
