"""Pages show whether a conversation kept its prefix, or where and why the prefix broke, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from artifacts.library import delete_artifacts, store_bytes
from capabilities.actors import SYSTEM
from capabilities.models import Agent, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import save_agent
from tests.cast import create_key
from tests.console.page import Page
from tests.gateway.plane import PNG, image, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def key(demo: None) -> str:
    return create_key("text-agent")


def set_limit(max_images: int) -> None:
    Service.objects.filter(service_id="echo-vision").update(limits={"image": {"maxCount": max_images}})
    snapshot.refresh()


def send_conversation(key: str, turn_count: int, model: str = "echo-vision", **fields: Any) -> str:
    """Send a conversation with one image in each user turn. Return the request's id."""
    messages: list[dict[str, Any]] = []
    for number in range(turn_count):
        messages += [{"role": "user", "content": [{"type": "text", "text": f"turn {number}"}, image()]}]
        messages += [{"role": "assistant", "content": f"answer {number}"}]
    body = {"model": model, "messages": messages[:-1], "language": "en", **fields}
    answer = post(key, body)
    assert answer.status_code == 200, answer.content
    return str(answer["x-request-id"])


def prefix_fact(browser: Client, request_id: str, language: str = "en") -> str:
    """Return what the page of a request says about the conversation's prefix."""
    logged(request_id)
    page = Page(browser.get(reverse("request", args=[request_id]), headers={"accept-language": language}))
    return page.fact("前缀" if language == "zh-hans" else "Prefix").text


def test_request_page_shows_that_the_prefix_was_kept(admin: Client, key: str) -> None:
    first, second = send_conversation(key, 1), send_conversation(key, 2)
    assert "This request starts its conversation, so there is no prefix to keep." in prefix_fact(admin, first)
    assert "Prefix kept: earlier turns are sent unchanged." in prefix_fact(admin, second)
    assert "前缀不变：此前各轮的内容与当时收到的一致。" in prefix_fact(admin, second, "zh-hans")


def test_request_page_shows_where_a_full_limit_broke_the_prefix(admin: Client, key: str) -> None:
    set_limit(2)
    send_conversation(key, 2)
    third = send_conversation(key, 3)
    assert (
        "Prefix broken at message 2, because a limit was full and half of it was freed. "
        "With this file, the number of files for image would be 3; the limit is 2."
    ) in prefix_fact(admin, third)
    assert "前缀从第 2 条消息起改变，因为达到上限后一次腾出了一半空间。" in prefix_fact(admin, third, "zh-hans")


def test_prefix_breaks_again_only_after_half_a_limit_of_further_files(admin: Client, key: str) -> None:
    set_limit(4)
    pages = [prefix_fact(admin, send_conversation(key, turn_count)) for turn_count in range(1, 8)]
    assert [number for number, text in enumerate(pages, 1) if "Prefix broken" in text] == [5, 7]
    assert "Prefix broken at message 6" in pages[6]


def test_prefix_of_a_conversation_without_files_is_kept_and_not_stored(admin: Client, key: str) -> None:
    answer = post(key, {"model": "echo-vision", "messages": [{"role": "user", "content": "hello"}]})
    row = logged(answer["x-request-id"])
    assert (row.conversation, row.prefix) == (None, None)
    assert "Prefix kept: without files, every message is sent unchanged." in prefix_fact(admin, row.pk)


def test_changing_the_language_breaks_the_prefix_at_the_first_message(admin: Client, key: str) -> None:
    send_conversation(key, 1)
    second = send_conversation(key, 2, language="zh")
    assert "Prefix broken at message 1, because the language" in prefix_fact(admin, second)


def test_new_agent_breaks_the_prefix_at_the_message_that_lists_agents(admin: Client, key: str) -> None:
    """An image's description lists the agents that can read the image, so a new agent changes an earlier message."""
    send_conversation(key, 1, model="echo-text")
    save_agent(SYSTEM, Agent(agent_id="painter", service=Service.objects.get(service_id="vision-model")))
    snapshot.refresh()
    sentence = "Prefix broken at message 2, because the text that replaces a file there changed"
    assert sentence in prefix_fact(admin, send_conversation(key, 2, model="echo-text"))


def test_missing_file_breaks_the_prefix_at_the_message_with_the_file(admin: Client, key: str) -> None:
    """The content of a missing file cannot be sent, so the message with that file differs."""
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    question = {"role": "user", "content": [image(f"artifact:{row.pk}")]}
    next_turns = [{"role": "assistant", "content": "I see"}, {"role": "user", "content": "and now?"}]
    assert post(key, {"model": "echo-vision", "messages": [question], "language": "en"}).status_code == 200
    delete_artifacts(SYSTEM, [row.pk])
    second = post(key, {"model": "echo-vision", "messages": [question, *next_turns], "language": "en"})
    text = prefix_fact(admin, second["x-request-id"])
    assert (
        "Prefix broken at message 2, because a file there is delivered differently than before. The file's content"
        in text
    )


def test_prefix_of_an_unknown_conversation_is_shown_as_unknown(admin: Client, key: str) -> None:
    send_conversation(key, 1, model="echo-text")
    assert "Prefix unknown" in prefix_fact(admin, send_conversation(key, 2))


@pytest.mark.parametrize(
    ("max_images", "language", "sentence"),
    [
        (2, "en", "Prefix kept if the next turn adds another file like this."),
        (2, "zh-hans", "下一轮若再有一个这样的文件，前缀不变。"),
        (
            1,
            "en",
            "If the next turn adds another file like this, the prefix breaks at message 2, because a limit "
            "is full and half of it is freed. With this file, the number of files for image would be 2; the limit "
            "is 1.",
        ),
        (1, "zh-hans", "前缀会从第 2 条消息起改变，因为达到上限后会一次腾出一半空间。"),
    ],
)
def test_preview_and_simulation_show_the_effect_of_another_file_on_the_prefix(
    admin: Client, demo: None, max_images: int, language: str, sentence: str
) -> None:
    set_limit(max_images)
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    card = {"service": "echo-vision", "fragment": "card"}
    assert Page(admin.get(reverse("artifact", args=[row.pk]), card, headers={"accept-language": language})).shows(
        sentence
    )
    data = {"task": "design", "act": "simulate", "sim-message": "look", "sim-artifact": row.pk, "sim-language": "en"}
    simulated = Page(admin.post(reverse("simulate"), data, headers={"accept-language": language}))
    assert simulated.control("simulation").shows(sentence)
