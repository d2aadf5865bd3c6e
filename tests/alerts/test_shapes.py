"""The message body for each chat service, its signature, and the responses that count as failures."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from routing_admin.core.alerts.webhook import SHAPES, TEXT_BYTES, Notice, ShapeName, refusal_in, write
from tests.engines.webhook import hmac_signature

NOTICE = Notice(
    ("[routing_admin] Critical – Key refused", "The provider a&b <x> refuses its key (401)."), {"kind": "k"}
)
# The time has a fraction of a second, because DingTalk's signature includes the milliseconds.
NOW = 1_763_800_000.25


def test_every_message_format_is_implemented():
    assert list(SHAPES) == list(ShapeName)


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        (ShapeName.JSON, {"kind": "k", "text": NOTICE.text}),
        (ShapeName.WECOM, {"msgtype": "text", "text": {"content": NOTICE.text}}),
        (ShapeName.DINGTALK, {"msgtype": "text", "text": {"content": NOTICE.text}}),
        (ShapeName.FEISHU, {"msg_type": "text", "content": {"text": NOTICE.text.replace("<", "‹")}}),
        (ShapeName.SLACK, {"text": NOTICE.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}),
    ],
)
def test_message_body_has_the_format_of_the_chat_service(shape, body):
    """The message bodies follow the vendors' documentation. Markup in a name must not notify chat users."""
    assert write(shape, NOTICE, "https://chat.example/hook", "", NOW) == ("https://chat.example/hook", body)


def test_dingtalk_signature_is_in_the_url():
    """DingTalk's signature is an HMAC-SHA256 of the time in milliseconds and the secret; the secret is also the key."""
    url, _ = write(ShapeName.DINGTALK, NOTICE, "https://oapi.dingtalk.com/robot/send?access_token=t", "SECs", NOW)
    query = parse_qs(urlsplit(url).query)
    assert query["timestamp"] == ["1763800000250"]
    assert query["access_token"] == ["t"]
    assert query["sign"] == [hmac_signature("SECs", "1763800000250\nSECs")]


def test_feishu_signature_is_in_the_body():
    """Feishu's signature is the HMAC of an empty message. Its key is the time in seconds followed by the secret."""
    url, body = write(ShapeName.FEISHU, NOTICE, "https://open.feishu.cn/x", "s3cret", NOW)
    assert url == "https://open.feishu.cn/x"
    assert (body["timestamp"], body["sign"]) == ("1763800000", hmac_signature("1763800000\ns3cret", ""))


def test_long_message_is_truncated_between_characters():
    """Every text is cut to the number of bytes that the strictest chat service accepts."""
    text = write(ShapeName.WECOM, Notice(("密" * 3000,)), "https://chat.example", "", NOW)[1]["text"]["content"]
    assert TEXT_BYTES - 3 < len(text.encode()) <= TEXT_BYTES
    assert set(text) == {"密"}


@pytest.mark.parametrize(
    ("shape", "status", "answer", "expected"),
    [
        (ShapeName.WECOM, 200, {"errcode": 93000, "errmsg": "invalid webhook url"}, ("93000", "invalid webhook url")),
        (ShapeName.DINGTALK, 200, {"errcode": 310000, "errmsg": "sign not match"}, ("310000", "sign not match")),
        (ShapeName.FEISHU, 200, {"code": 19021, "msg": "sign match fail"}, ("19021", "sign match fail")),
        (ShapeName.FEISHU, 400, {"code": 9499, "msg": "Bad Request"}, ("9499", "Bad Request")),
        (ShapeName.SLACK, 403, "invalid_token", ("403", "invalid_token")),
        (ShapeName.JSON, 500, "", ("500",)),
        (ShapeName.WECOM, 200, "<html>", ("wecom", "200")),
        (ShapeName.FEISHU, 200, [], ("feishu",)),
    ],
)
def test_failure_is_recognized_in_a_response_with_status_200(shape, status, answer, expected):
    body = answer if isinstance(answer, str) else json.dumps(answer)
    refusal = refusal_in(shape, status, body.encode())
    assert refusal is not None
    assert all(text in refusal for text in expected)


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        (ShapeName.WECOM, b'{"errcode": 0, "errmsg": "ok"}'),
        (ShapeName.DINGTALK, b'{"errcode": 0, "errmsg": "ok"}'),
        (ShapeName.FEISHU, b'{"code": 0, "msg": "success", "data": {}}'),
        (ShapeName.FEISHU, b'{"StatusCode": 0, "StatusMessage": "success"}'),
        (ShapeName.SLACK, b"ok"),
        (ShapeName.JSON, b""),
    ],
)
def test_successful_response_is_not_a_failure(shape, answer):
    assert refusal_in(shape, 200, answer) is None
