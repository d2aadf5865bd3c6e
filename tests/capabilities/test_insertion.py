"""A value in a Chinese sentence is set off by a space where it begins or ends with a Latin letter or digit."""

from __future__ import annotations

import pytest

from capabilities.core.translatable import insert_facts


@pytest.mark.parametrize(
    ("sentence", "facts", "expected"),
    [
        ("%(who)s 描述%(file)s", {"who": "qwen", "file": "图片"}, "qwen 描述图片"),
        ("%(who)s 描述%(file)s", {"who": "qwen", "file": "plan.png"}, "qwen 描述 plan.png"),
        ("描述 %(file)s", {"file": "图片"}, "描述图片"),
        ("%(file)s由 %(who)s 描述", {"file": "plan.png", "who": "a"}, "plan.png 由 a 描述"),
        ("%(file)s由 %(who)s 描述", {"file": "图片", "who": "千问"}, "图片由千问描述"),
        ("%(who)s每天最多 %(limit)s 个", {"who": "团队 red", "limit": 5}, "团队 red 每天最多 5 个"),
        ("%(who)s每天最多 %(limit)s 个", {"who": "该智能体", "limit": 5}, "该智能体每天最多 5 个"),
        ("无人可读：%(kinds)s。", {"kinds": "音频、file"}, "无人可读：音频、file。"),
        ("%(name)s：%(share)s%% 失败", {"name": "a", "share": 5}, "a：5% 失败"),
        ("收到 %(text)s 后", {"text": "“好”"}, "收到 “好” 后"),
        ("版本%(number)s中的%(name)s", {"number": 7, "name": ""}, "版本 7 中的"),
    ],
)
def test_inserted_value_is_spaced_only_between_chinese_and_latin(
    sentence: str, facts: dict[str, object], expected: str
) -> None:
    """Spaces that a translator wrote around the placeholder do not matter."""
    assert insert_facts(sentence, facts) == expected


def test_english_sentence_keeps_its_spaces_around_inserted_values() -> None:
    assert insert_facts("Open %(name)s now (%(code)s)", {"name": "图片", "code": "图"}) == "Open 图片 now (图)"


def test_missing_placeholder_value_raises_key_error() -> None:
    with pytest.raises(KeyError):
        insert_facts("%(name)s", {})
