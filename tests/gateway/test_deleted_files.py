"""Deleted and expired files never stop a conversation, and agents learn nothing about other agents' private files."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from artifacts.library import delete_artifacts, restore_artifacts, store_bytes
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from tests.gateway.plane import PNG, answer_text, chat_body, logged, post

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]

NEVER = "artifact:" + "0" * 32
ODD = "artifact:../../etc/passwd"


def store_file(owner: str = "text-agent", **more: Any) -> Artifact:
    return store_bytes(SYSTEM, PNG, owner=owner, filename="dot.png", declared="image/png", **more)


def make_missing(row: Artifact, how: str) -> None:
    if how == "deleted":
        delete_artifacts(SYSTEM, [row.pk])
    elif how == "expired":
        Artifact.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        Artifact.objects.filter(pk=row.pk).delete()


def as_image(ref: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": ref}}


def as_file(ref: str) -> dict[str, Any]:
    return {"type": "file", "file": {"file_id": ref}}


def as_audio(ref: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": ref, "format": "wav"}}


FORMS = {"image_url": as_image, "file_id": as_file, "input_audio": as_audio}


def build_result(ref: str) -> dict[str, Any]:
    """Return the short form of a `get_artifact` result, with the artifact's name and without data."""
    metadata = {"id": ref.removeprefix("artifact:"), "filename": "seen.png", "mimeType": "image/png"}
    return {"contentType": "image", "routing": "image_url", "metadata": metadata}


def tool_messages(ref: str) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "get_artifact", "arguments": "{}"}}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps(build_result(ref))},
    ]


def ask(key: str, *messages: dict[str, Any], model: str = "echo-vision", **more: Any) -> Any:
    return post(key, {"model": model, "messages": list(messages), **more})


def with_later_messages(parts: list[Any], role: str = "user") -> list[dict[str, Any]]:
    return [
        {"role": role, "content": parts},
        {"role": "assistant", "content": "A dot."},
        {"role": "user", "content": "And now?"},
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["deleted", "expired", "pruned"])
def test_missing_file_in_an_earlier_message_is_described(key, how, form):
    row = store_file()
    turn = with_later_messages([{"type": "text", "text": "Look"}, FORMS[form](row.ref)])
    assert "文件处理失败" not in answer_text(ask(key, *turn))
    make_missing(row, how)
    text = answer_text(ask(key, *turn))
    name = row.pk if how == "pruned" else "dot.png"
    assert f"[文件处理失败: {name}]" in text
    assert f"工件ID: {row.ref}" in text


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("ref", [NEVER, ODD, "file-abc123"])
def test_unknown_reference_in_an_earlier_message_is_described(key, ref, role):
    response = ask(key, *with_later_messages([{"type": "text", "text": "Look"}, as_file(ref)], role), language="en")
    assert "[File could not be processed: " in answer_text(response)
    assert response.headers["x-routing-adaptation"] == "file=described"


def test_description_of_an_unknown_file_has_the_name_that_the_message_gives_it(key):
    part = {"type": "file", "file": {"file_id": NEVER, "filename": "plan.pdf"}}
    assert "[文件处理失败: plan.pdf]" in answer_text(ask(key, *with_later_messages([part])))


@pytest.mark.parametrize("how", ["deleted", "expired"])
@pytest.mark.parametrize("form", FORMS)
def test_missing_file_in_the_newest_message_is_described(key, how, form):
    row = store_file()
    make_missing(row, how)
    response = post(key, chat_body(FORMS[form](row.ref), model="echo-vision"))
    assert "[文件处理失败: dot.png]" in answer_text(response)
    assert response.headers["x-routing-adaptation"] == "image=described"
    assert "artifact_missing" in str(logged(response.headers["x-request-id"]).attempts.get().deliveries)


@pytest.mark.parametrize(("form", "place"), [("image_url", "image_url.url"), ("file_id", "file.file_id")])
@pytest.mark.parametrize("ref", [NEVER, ODD])
def test_unknown_reference_in_the_newest_user_message_is_400(key, ref, form, place):
    newest = {"role": "user", "content": [{"type": "text", "text": "Look"}, FORMS[form](ref)]}
    for after in ([], tool_messages(store_file().ref), [{"role": "assistant", "content": "I"}]):
        response = ask(key, {"role": "user", "content": "Hello"}, newest, *after)
        assert response.status_code == 400
        error = response.json()["error"]
        assert (error["code"], error["param"]) == ("artifact_not_found", f"messages[1].content[1].{place}")


@pytest.mark.parametrize("how", ["deleted", "expired", "pruned"])
def test_tool_result_with_a_missing_file_is_described(key, how):
    """An unknown artifact in a tool result is not an error, because a program wrote the result, not the user.

    The description contains the tool result's filename.
    """
    row = store_file()
    make_missing(row, how)
    for ref in (row.ref, NEVER):
        text = answer_text(ask(key, {"role": "user", "content": "Look"}, *tool_messages(ref)))
        name = "dot.png" if ref == row.ref and how != "pruned" else "seen.png"
        assert f"[文件处理失败: {name}]" in text
        assert f"工件ID: {ref}" in text


def test_unknown_reference_without_a_user_message_is_described(key):
    text = answer_text(ask(key, {"role": "system", "content": [as_file(NEVER)]}, *tool_messages(NEVER)))
    assert text.count("文件处理失败") == 2


@pytest.mark.parametrize("how", ["living", "deleted", "expired"])
def test_private_file_of_another_agent_is_indistinguishable_from_an_unknown_file(key, how):
    row = store_file("vision-agent", visibility="private")
    if how != "living":
        make_missing(row, how)

    def answers(ref: str) -> list[Any]:
        calls = [ask(key, {"role": "user", "content": [form(ref)]}) for form in FORMS.values()]
        calls += [ask(key, *with_later_messages([form(ref)])) for form in FORMS.values()]
        calls += [ask(key, {"role": "user", "content": "Look"}, *tool_messages(ref))]
        seen = [
            (response.status_code, response.headers.get("x-routing-adaptation"), error_or_text(response))
            for response in calls
        ]
        return [json.loads(json.dumps(seen).replace(ref.removeprefix("artifact:"), "ID"))]

    def error_or_text(response: Any) -> str:
        body = response.json()
        return body["error"]["message"] if "error" in body else answer_text(response)

    assert answers(row.ref) == answers(NEVER)


def test_owner_sees_the_name_of_a_deleted_private_file(key):
    row = store_file(visibility="private")
    make_missing(row, "deleted")
    assert "[文件处理失败: dot.png]" in answer_text(post(key, chat_body(as_image(row.ref), model="echo-vision")))


def test_deleted_file_is_not_sent_until_it_is_restored(key):
    """A deleted file's bytes are kept so that the deletion can be undone. Meanwhile, no model receives them."""
    row = store_file()
    turn = with_later_messages([as_image(row.ref)])
    before = ask(key, *turn)
    assert before.headers["x-routing-adaptation"] == "image=native"
    make_missing(row, "deleted")
    assert ask(key, *turn).headers["x-routing-adaptation"] == "image=described"
    restore_artifacts(SYSTEM, [row.pk])
    assert answer_text(ask(key, *turn)) == answer_text(before)
