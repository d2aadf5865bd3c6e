"""Requests to APIs other than chat that are refused before any upstream call: bodies, files, keys, methods."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from capabilities.core.operations.table import OPERATIONS, BodyShape
from capabilities.json_bodies import body_limit
from routing_admin.console.settings import actions as installation
from tests.cast import create_key, limit_agent
from tests.gateway.asgi_caller import Call, Loopback, headers
from tests.gateway.plane import logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

EMBEDDINGS, TRANSCRIPTS, EDITS = "/v1/embeddings", "/v1/audio/transcriptions", "/v1/images/edits"
PATHS = [f"/v1{operation.path}" for operation in OPERATIONS]
WAV = b"RIFF$\0\0\0WAVEfmt "


def post_form(key: str, path: str = TRANSCRIPTS, **fields: Any) -> Any:
    return Client().post(path, fields, headers={"authorization": f"Bearer {key}"})


def read_error(response: Any) -> tuple[int, str, str | None]:
    error = response.json()["error"]
    assert error["request_id"] == response.headers["x-request-id"]
    return response.status_code, error["code"], error["param"]


def wav(name: str = "a.wav", data: bytes = WAV) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data, "audio/wav")


@pytest.mark.parametrize("path", PATHS)
def test_every_operation_requires_a_key_with_its_scope_and_the_post_method(key, path) -> None:
    assert post("", {}, path).status_code == 401
    assert post(create_key("text-agent", scopes=["registry:read"]), {}, path).status_code == 403
    refused = Client().get(path, headers={"authorization": f"Bearer {key}"})
    assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "path", [f"/v1{operation.path}" for operation in OPERATIONS if BodyShape.JSON in operation.bodies]
)
@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"[1]", "invalid_json", None),
        (b'{"model": ', "invalid_json", None),
        (b"{}", "missing_required_parameter", "model"),
        (b'{"model": 7}', "invalid_type", "model"),
        (b'{"model": "unknown"}', "model_not_found", "model"),
    ],
)
def test_invalid_body_is_refused_and_logged(key, path, body, code, param) -> None:
    refused = post(key, body, path)
    assert read_error(refused)[1:] == (code, param)
    row = logged(refused.headers["x-request-id"])
    assert (row.outcome, row.surface[:3], row.agent) == (code, "v1/", "text-agent")


def test_wrong_content_type_is_refused(key) -> None:
    refused = post_form(key, EMBEDDINGS, model="m", input="a")
    assert read_error(refused) == (400, "invalid_content_type", None)
    assert "application/json" in refused.json()["error"]["message"]
    refused = post(key, {"model": "m"}, TRANSCRIPTS)
    assert read_error(refused) == (400, "invalid_content_type", None)
    assert "multipart/form-data with the fields model, file" in refused.json()["error"]["message"]


def test_form_without_a_file_or_a_model_is_refused(key) -> None:
    assert read_error(post_form(key, file=wav())) == (400, "missing_required_parameter", "model")
    assert read_error(post_form(key, model="m")) == (400, "missing_required_parameter", "file")
    assert read_error(post_form(key, EDITS, model="m", prompt="p")) == (400, "missing_required_parameter", "image")
    assert read_error(post_form(key, model="m", file="artifact:" + "0" * 32)) == (400, "artifact_not_found", "file")
    assert read_error(post_form(key, model="m", file="no id")) == (400, "artifact_not_found", "file")


def test_private_file_of_another_agent_is_not_found(key, demo) -> None:
    other_key = create_key("vision-agent", scopes=["artifacts:write"])
    ref = post_form(other_key, "/v1/files", file=wav(), purpose="user_data").json()["id"]
    Artifact.objects.update(visibility="private")
    assert read_error(post_form(key, model="m", file=ref)) == (400, "artifact_not_found", "file")


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=x"]
)
def test_malformed_form_is_refused(key, content_type) -> None:
    sent = {"authorization": f"Bearer {key}"}
    refused = Client().generic("POST", TRANSCRIPTS, b"--y\r\n\r\nz", content_type=content_type, headers=sent)
    assert refused.status_code == 400
    assert read_error(refused)[1] in ("invalid_form", "missing_required_parameter")


def test_file_or_body_above_its_size_limit_is_refused(key, settings) -> None:
    settings.MAX_UPLOAD_BYTES = 1000
    assert read_error(post_form(key, model="m", file=wav(data=b"x" * 1001))) == (413, "file_too_large", "file")
    assert read_error(post_form(key, model="m", file=wav(data=b"x" * 1000))) == (404, "model_not_found", "model")
    bomb = gzip.compress(b" " * (body_limit(EMBEDDINGS) + 1), 1)
    assert read_error(post(key, bomb, EMBEDDINGS, **{"content-encoding": "gzip"})) == (413, "body_too_large", None)


def test_model_that_is_not_allowed_is_403(key) -> None:
    limit_agent(models=["task:planning"])
    refused = post(key, {"model": "task:design", "input": "a"}, EMBEDDINGS)
    assert refused.status_code == 403
    assert logged(refused.headers["x-request-id"]).status == 403


def test_form_is_recorded_if_body_recording_is_enabled(key) -> None:
    installation.record_bodies(SYSTEM, True)
    response = post_form(key, model="auto", file=wav(), language="de")
    (message,) = logged(response.headers["x-request-id"]).body["messages"]
    text, file = message["content"]
    assert json.loads(text["text"]) == {"language": "de"}
    assert (file["kind"], file["filename"]) == ("audio", "a.wav")


def test_operation_is_refused_if_only_the_demo_provider_is_available(key) -> None:
    """The demo's provider answers only chat."""
    refused = post(key, {"model": "auto", "input": "a"}, EMBEDDINGS)
    assert read_error(refused) == (400, "operation_not_offered", "model")
    assert logged(refused.headers["x-request-id"]).attempts.first().outcome == "skipped_protocol"


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
async def test_disconnect_ends_an_embeddings_call(loopback: Loopback, key: str) -> None:
    data = json.dumps({"model": "silent/m", "input": "a"}).encode()
    call = Call([data], headers(key, len(data), [(b"x-request-id", b"the-call")]), path=EMBEDDINGS)
    async with loopback.serve():
        running = asyncio.create_task(call.run())
        await loopback.requested.wait()
        call.disconnected.set()
        await running
        await loopback.closed.wait()
    row = await asyncio.to_thread(logged, "the-call")
    assert (row.outcome, row.status, row.surface) == ("client_cancelled", 499, "v1/embeddings")
    assert call.sent == []
