"""A request that is refused before any model call gets an English error. The log stores its message id and values."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.gateway.plane import chat_body, image, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

UNKNOWN = (
    "The model '%(name)s' does not exist. GET /v1/models lists what is available: task:<task type>, a service "
    "id, provider/model or auto."
)
GONE = "This agent has no such artifact. Upload the file, or ask its owner for the reference."
REFUSED: tuple[tuple[Any, int, str, dict[str, Any], str], ...] = (
    (chat_body("x", model="unknown-model"), 404, UNKNOWN, {"name": "unknown-model"}, "模型“unknown-model”不存在。"),
    (chat_body("x", top_p=7), 400, "%(param)s must be a number from %(low)s to %(high)s.",
     {"param": "top_p", "low": "0", "high": "1"}, "top_p 必须是 0 到 1 之间的数字。"),
    (chat_body("x", stop=1), 400, "%(param)s must be a string or a list of strings.", {"param": "stop"},
     "stop 必须是字符串，或由字符串组成的列表。"),
    (chat_body("x", messages=[]), 400, "messages must be a list with at least one message.", {},
     "messages 必须是至少包含一条消息的列表。"),
    (chat_body("x", messages=None), 400, "%(param)s is required.", {"param": "messages"}, "缺少必填字段 messages。"),
    (chat_body("x", tool_choice="never"), 400, "%(name)s must be one of %(choices)s, or name a function.",
     {"name": "tool_choice", "choices": ["none", "auto", "required"]},
     "tool_choice 必须是 none、auto、required 之一，或指定一个函数。"),
    (chat_body(image("artifact:0000000000000000000000")), 400, GONE, {}, "该智能体没有这个工件。"),
    (b'{"model": "task:planning", "messages": [', 400,
     "The body is not valid JSON (line %(line)s, column %(column)s).", {"line": 1, "column": 41},
     "请求正文不是有效的 JSON（第 1 行，第 41 列）。"),
)  # fmt: skip
"""Request body, status, logged message id and values, and the beginning of the Chinese message on the page."""


@pytest.mark.parametrize(
    ("body", "status", "code", "facts", "chinese"), REFUSED, ids=[case[2][:40] for case in REFUSED]
)
def test_refused_call_is_logged_as_message_id_and_values(
    demo: None, key: str, admin: Client, body: Any, status: int, code: str, facts: dict[str, Any], chinese: str
) -> None:
    answer = post(key, body)
    message = answer.json()["error"]["message"]
    row = logged(answer.headers["x-request-id"])
    assert answer.status_code == row.status == status
    assert row.sentence == {"code": code, "facts": facts}
    assert message == code % {name: ", ".join(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}
    admin.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-hans"
    page = html.unescape(admin.get(reverse("request", args=[row.pk])).content.decode())
    assert chinese in page
    assert message not in page
