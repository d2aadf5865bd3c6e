"""Descriptions count towards the calling agent's limits. If too little is left, no describer is called."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from artifacts.library import store_bytes
from capabilities.actors import SYSTEM
from capabilities.core.services.agent_limits import Meter
from routing_admin.limits.uses import find_uses
from tests.cast import AgentProgram, limit_agent
from tests.describing.describers import DESCRIPTION, QUESTION, describing_lab, received_bodies
from tests.gateway.plane import PNG, chat_body, image, logged, post

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "logs"]),
    pytest.mark.usefixtures("demo", "returned_quotas"),
]


def used_tokens() -> int:
    return find_uses(["agent:text-agent"])["agent:text-agent", Meter.TOKENS_PER_DAY]


def ask(key: str) -> Any:
    return post(key, chat_body(QUESTION, image(), model="task:blind", language="en", max_tokens=50))


def test_describer_and_answer_tokens_both_count_toward_the_budget(key: str) -> None:
    """The describer's tokens are counted once. If the description is cached, only the answer's tokens are counted."""
    limit_agent(tokensPerDay=1_000_000)
    with describing_lab():
        row = logged(ask(key).headers["x-request-id"])
        (delivery,) = row.attempts.get().deliveries
        call = delivery["description"]["call"]
        own = row.prompt_tokens + row.completion_tokens
        assert used_tokens() == own + call["promptTokens"] + call["completionTokens"]
        ask(key)
        assert used_tokens() == 2 * own + call["promptTokens"] + call["completionTokens"]


def test_file_is_not_described_if_the_budget_is_too_small(key: str) -> None:
    limit_agent(tokensPerDay=5_000)
    with describing_lab() as lab:
        answer = ask(key)
        assert received_bodies(lab, "seer") == []
    assert (answer.status_code, answer.headers["x-routing-adaptation"]) == (200, "image=described:describer_failed")
    (delivery,) = logged(answer.headers["x-request-id"]).attempts.get().deliveries
    assert delivery["description"]["fault"] == "budget_exceeded"
    assert logged(delivery["description"]["call"]["requestId"]).status == 429


def test_llm_send_describes_files_and_counts_describing_tokens(text_agent: AgentProgram) -> None:
    limit_agent(tokensPerDay=1_000_000)
    with describing_lab():
        ref = text_agent.stored("dot.png", PNG, "image/png")["ref"]
        attachment = {"type": "image", "artifactRef": ref}
        answer = text_agent.post(
            "/llm/send", {"prompt": "What is it?", "taskType": "blind", "attachments": [attachment]}
        )
        assert answer.status_code == 200, answer.content
        assert answer.headers["x-routing-adaptation"] == "image=described:by_model"
        row = logged(answer.headers["x-request-id"])
        (delivery,) = row.attempts.get().deliveries
        call = delivery["description"]["call"]
        spent = row.prompt_tokens + row.completion_tokens + call["promptTokens"] + call["completionTokens"]
        assert used_tokens() == spent


def test_simulation_shows_a_placeholder_until_a_real_call_describes_the_file(admin: Client) -> None:
    with describing_lab() as lab:
        row = store_bytes(SYSTEM, PNG, filename="dot.png")
        form = {"task": "blind", "sim-message": "What is it?", "sim-artifact": row.pk, "sim-language": "en"}

        def walk(action: str) -> Any:
            return admin.post(reverse("simulate"), {**form, "act": action}).context["panel"].run_view

        assert "[Here seer describes the file" in str(walk("simulate").stops[0].payload)
        assert received_bodies(lab, "seer") == []
        assert DESCRIPTION in str(walk("send").stops[0].payload)
        assert DESCRIPTION in str(walk("simulate").stops[0].payload)
        assert len(received_bodies(lab, "seer")) == 1
