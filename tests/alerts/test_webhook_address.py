"""A webhook's URL determines the message format, the secret and the language. Secrets are never shown."""

from __future__ import annotations

import pytest

from routing_admin.core.alerts.webhook import CHINESE, ENGLISH, ShapeName, WebhookAddressError, parse_webhook

HOOKS = {
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=k": (ShapeName.WECOM, CHINESE),
    "https://oapi.dingtalk.com/robot/send?access_token=t": (ShapeName.DINGTALK, CHINESE),
    "https://open.feishu.cn/open-apis/bot/v2/hook/h": (ShapeName.FEISHU, CHINESE),
    "https://open.larksuite.com/open-apis/bot/v2/hook/h#lang=en": (ShapeName.FEISHU, ENGLISH),
    "https://hooks.slack.com/services/T/B/x": (ShapeName.SLACK, ENGLISH),
    "https://ops.example/hook": (ShapeName.JSON, ENGLISH),
    "https://ops.example/hook#shape=slack&lang=zh": (ShapeName.SLACK, CHINESE),
}


@pytest.mark.parametrize("text", HOOKS)
def test_webhook_host_determines_message_format_and_language_unless_given(text):
    webhook = parse_webhook(text)
    assert (webhook.shape, webhook.language) == HOOKS[text]


def test_fragment_with_the_secret_is_removed_from_the_webhook_url():
    """A webhook URL's fragment contains its secret. A plus sign in it is a plus sign, not a space."""
    webhook = parse_webhook(" https://ops.example/hook?id=1#shape=feishu&secret=a+b/c= ")
    assert (webhook.url, webhook.secret) == ("https://ops.example/hook?id=1", "a+b/c=")


@pytest.mark.parametrize(
    "text",
    [
        *("hunter2", "ftp://ops.example/hunter2", "https://hunter2@ops.example/x", "echo://local", "https:///hunter2"),
        *("https://a.example/#hunter2", "https://a.example/#shape=hunter2", "https://a.example/#lang=hunter2"),
        *("https://a.example/#secret=", "https://a.example/#shape=json&secret=hunter2", "https://a.example/#a=hunter2"),
    ],
)
def test_invalid_webhook_url_is_rejected_without_echoing_the_url(text):
    with pytest.raises(WebhookAddressError) as refused:
        parse_webhook(text)
    assert "hunter2" not in str(refused.value)
    assert str(refused.value).endswith((".", "empty."))


def test_webhook_repr_and_hidden_text_contain_no_secret():
    hook = parse_webhook("https://ops.example/services/hunter2hunter2?key=0123-4567-89#shape=feishu&secret=swordfish1")
    hidden = hook.hide("no /services/hunter2hunter2?key=0123-4567-89 here, hunter2hunter2, 0123-4567-89, swordfish1")
    for secret in ("hunter2hunter2", "0123-4567-89", "swordfish1"):
        assert secret not in hidden
        assert secret not in repr(hook)
    assert hook.host == "ops.example"
