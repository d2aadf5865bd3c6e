"""If a candidate cannot read a file, another model describes the file first. The calls use real sockets.

This model is called the describer, here `seer`. A file's facts are its name, type and size. They replace the file if
there is no description.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import wave
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.utils import timezone
from PIL import Image

from capabilities.actors import SYSTEM
from capabilities.runtime import renew
from routing_admin.console.routes.actions import delete_route, save_route
from routing_admin.console.settings.actions import set_content_policy
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.dispatch.descriptions import describing
from routing_admin.dispatch.descriptions.store import FAILURE_LIFETIME
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import FileDescription, TaskRoute
from routing_admin.upstream import process_upstream
from tests.describing.describers import (
    DESCRIPTION,
    POLICY,
    QUESTION,
    add_route,
    describing_lab,
    received_bodies,
    request_text,
)
from tests.gateway.asgi_caller import Call, headers
from tests.gateway.plane import chat_body, image, logged, post
from tests.lab import Lab
from tests.lab.scenarios import SCENARIOS

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

PROTOCOLS = ("openai", "openai-responses", "anthropic", "gemini")
FAULTS = {
    scenario.plain: name
    for name, scenario in reversed(SCENARIOS.items())
    if scenario.plain and "openai" in scenario.needs
}
"""For each fault of a plain call in OpenAI's protocol, the first scenario that causes it.

tests/fallback/test_fault_matrix.py proves for every scenario which fault it causes.
"""
SLOW = ("silent", "drip")
TYPICAL = ("http_500", "truncated_body", "empty_content")


def picture(colour: str) -> dict[str, Any]:
    data = io.BytesIO()
    Image.new("RGB", (2, 2), colour).save(data, "PNG")
    return image("data:image/png;base64," + base64.b64encode(data.getvalue()).decode())


def ask(key: str, *content: Any, model: str = "task:blind", **more: Any) -> Any:
    return post(key, chat_body(*(content or (QUESTION, image())), model=model, language="en", **more))


def last_text(body: Any) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def test_text_candidate_receives_file_facts_model_description_and_reference(key: str) -> None:
    with describing_lab() as lab:
        answer = ask(key)
        (describer_body,), (candidate_body,) = received_bodies(lab, "seer"), received_bodies(lab, "blind")
    assert answer.headers["x-routing-adaptation"] == "image=described:by_model"
    assert "data:image/png;base64" in request_text(describer_body)
    assert QUESTION["text"] not in request_text(describer_body)
    text = last_text(candidate_body)
    positions = [
        text.index(phrase) for phrase in ("[Attachment received]", "Described by seer, not seen by you", DESCRIPTION)
    ]
    assert positions == sorted(positions)
    assert text.rstrip().rpartition("\n")[2].startswith("Artifact ID: artifact:")


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_describer_and_candidate_may_use_any_protocol(key: str, protocol: str, stream: bool) -> None:
    """Each protocol is used once by the describer and once by the candidate, plain and streamed."""
    other = PROTOCOLS[(PROTOCOLS.index(protocol) + 1) % len(PROTOCOLS)]
    with describing_lab(seer=protocol, blind=other) as lab:
        answer = ask(key, stream=stream)
        answer.close()
        (body,) = received_bodies(lab, "blind")
    assert (answer.status_code, answer.headers["x-routing-adaptation"]) == (200, "image=described:by_model")
    assert DESCRIPTION in request_text(body)


def call_with_fault(key: str, lab: Lab, scenario: str, stream: bool = False) -> tuple[Any, ...]:
    """Return a call's outcome and what its candidate received, if the describer fails as in the scenario."""
    lab.play({"seer": scenario})
    renew(process_run_context)  # Otherwise, the previous fault would keep the describer in cooldown.
    number = list(SCENARIOS).index(scenario)
    answer = ask(key, QUESTION, picture(f"#{number:06x}"), stream=stream)
    # Closing a streamed response ends the request, which would close the test's database connection. For other
    # responses, Django's test client prevents this in the same way.
    request_finished.disconnect(close_old_connections)
    answer.close()
    request_finished.connect(close_old_connections)
    (body,) = received_bodies(lab, "blind")
    text = last_text(body)
    outcome = answer.status_code, answer.headers["x-routing-adaptation"]
    return *outcome, "Artifact ID: artifact:" in text, "Described by" in text


WITH_FACTS_ALONE = (200, "image=described:describer_failed", True, False)
"""The call is answered, the header reports the failure, and the candidate receives only the file's facts."""


@pytest.mark.parametrize(
    ("protocol", "stream"),
    [("openai", False), ("openai", True), ("openai-responses", False), ("anthropic", True), ("gemini", False)],
)
def test_failing_describer_does_not_fail_the_call(key: str, protocol: str, stream: bool) -> None:
    """The describer fails to answer, breaks its answer off, or answers with nothing."""
    # To save time, retry (and wait) in only one of the combinations.
    retries = None if protocol == "openai" and not stream else 0
    with describing_lab(seer=protocol, retries=retries) as lab:
        outcomes = {scenario: call_with_fault(key, lab, scenario, stream) for scenario in TYPICAL}
    assert outcomes == dict.fromkeys(TYPICAL, WITH_FACTS_ALONE)


def test_no_fault_of_a_describer_fails_the_call(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The faults include a describer that is silent and one that is too slow."""
    outcomes = {}
    with describing_lab(retries=0) as lab:
        for scenario in FAULTS.values():
            with monkeypatch.context() as patched:
                # These scenarios last until a timeout, so the describer's timeout is shortened.
                if scenario in SLOW:
                    patched.setattr(describing, "MAX_SECONDS", 0.5)
                outcomes[scenario] = call_with_fault(key, lab, scenario)
    assert outcomes == dict.fromkeys(FAULTS.values(), WITH_FACTS_ALONE)


def test_later_vision_candidate_receives_the_image(key: str) -> None:
    with describing_lab({"blind": "http_529"}) as lab:
        answer = ask(key, model="task:both")
        described, native = received_bodies(lab, "seer")
    assert answer.headers["x-routing-adaptation"] == "image=native"
    assert "You describe one file" in request_text(described)
    assert "You describe one file" not in request_text(native)
    assert "data:image/png;base64" in request_text(native)


def test_file_is_not_described_for_a_candidate_that_is_not_called(key: str) -> None:
    with describing_lab() as lab:
        add_route("seeing", "seer", "blind", content={"policy": POLICY})
        answer = ask(key, model="task:seeing")
        assert len(received_bodies(lab, "seer")) == 1
    assert answer.headers["x-routing-adaptation"] == "image=native"


@pytest.mark.parametrize("outcome", [f"say:{DESCRIPTION}", "http_500"], ids=["words", "failure"])
def test_next_turn_reuses_the_description_or_failure_of_the_first_turn(key: str, outcome: str) -> None:
    """The outcome of the first turn is kept even if the describer has recovered since."""
    turn = [{"role": "user", "content": [QUESTION, image()]}]
    next_turn = [*turn, {"role": "assistant", "content": "I see."}, {"role": "user", "content": "And now?"}]
    body = {"model": "task:blind", "language": "en"}
    with describing_lab({"seer": [*([outcome] * 3), "say:Something else."]}) as lab:
        post(key, {**body, "messages": turn})
        describer_calls = len(received_bodies(lab, "seer"))
        post(key, {**body, "messages": next_turn})
        first, second = received_bodies(lab, "blind")
        assert len(received_bodies(lab, "seer")) == describer_calls
    assert second["messages"][: len(first["messages"])] == first["messages"]


FAILED, BY_MODEL = "image=described:describer_failed", "image=described:by_model"


def test_describing_failure_is_stored_only_for_its_own_conversation(key: str) -> None:
    question = {"type": "text", "text": "Tell me about this."}
    with describing_lab({"seer": ["http_500"] * 3 + [f"say:{DESCRIPTION}"]}):
        outcomes = [ask(key, *content).headers["x-routing-adaptation"] for content in ((), (question, image()), ())]
    assert outcomes == [FAILED, BY_MODEL, BY_MODEL]


def answer_in(reply: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": reply.json()["choices"][0]["message"]["content"]}


def talk(key: str, body: Any) -> tuple[str, dict[str, Any]]:
    """Send a request on a separate event loop. Return how the image was delivered, and the assistant's message."""
    data = json.dumps(body).encode()
    call = Call([data], headers(key, len(data)))

    async def run() -> None:
        try:
            await call.run()
        finally:
            await process_upstream().close()

    asyncio.run(run())
    if not body.get("stream"):
        text = json.loads(call.answer)["choices"][0]["message"]["content"]
    else:
        lines = [
            line.removeprefix("data: ") for line in call.answer.decode().splitlines() if line.startswith("data: {")
        ]
        deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
        text = "".join(delta.get("content") or "" for delta in deltas)
    return call.answer_headers["x-routing-adaptation"], {"role": "assistant", "content": text}


@pytest.mark.django_db(transaction=True, databases=["default", "logs"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_new_conversation_with_the_same_opening_is_described_after_the_cooldown(key: str, stream: bool) -> None:
    turn = [{"role": "user", "content": [QUESTION, image()]}]
    follow_up = {"role": "user", "content": "And now?"}
    body = {"model": "task:blind", "language": "en", "stream": stream}
    script = {
        "seer": ["http_500", "http_500", f"say:{DESCRIPTION}"],
        "blind": ["say:It failed.", "say:No.", "say:No.", "say:A cat."],
    }
    with describing_lab(script, retries=0) as lab:
        failed, first_answer = talk(key, {**body, "messages": turn})
        again, _ = talk(key, {**body, "messages": turn})
        assert len(received_bodies(lab, "seer")) == 1
        # Backdate the failure, so that its cooldown has ended.
        FileDescription.objects.update(created_at=timezone.now() - FAILURE_LIFETIME)
        talk(key, {**body, "messages": turn})
        assert len(received_bodies(lab, "seer")) == 2
        FileDescription.objects.filter(conversation__gt="").update(created_at=timezone.now() - FAILURE_LIFETIME)
        healed, second_answer = talk(key, {**body, "messages": turn})
        assert (failed, again, healed) == (FAILED, FAILED, BY_MODEL)
        for answer, outcome in ((first_answer, failed), (second_answer, healed), (first_answer, failed)):
            later_outcome, _ = talk(key, {**body, "messages": [*turn, answer, follow_up]})
            assert later_outcome == outcome
        assert len(received_bodies(lab, "seer")) == 3


def test_describing_failure_applies_to_the_same_file_sent_again(key: str) -> None:
    """A description of the same file in a later message would contradict the failure in the earlier one."""
    turn = [{"role": "user", "content": [QUESTION, image()]}]
    with describing_lab({"seer": ["http_500", f"say:{DESCRIPTION}"]}, retries=0):
        first = post(key, {"model": "task:blind", "language": "en", "messages": turn})
        ask(key, {"type": "text", "text": "Tell me about this."}, image())
        again = [*turn, answer_in(first), {"role": "user", "content": [QUESTION, image()]}]
        later = post(key, {"model": "task:blind", "language": "en", "messages": again})
    assert later.headers["x-routing-adaptation"] == f"{FAILED}:2"


def test_description_is_shared_between_conversations(key: str) -> None:
    """For identical files with the same describer, prompt and language, the describer is called only once."""
    with describing_lab() as lab:
        ask(key)
        ask(key, {"type": "text", "text": "Tell me about this."}, image())
        assert len(received_bodies(lab, "seer")) == 1
        assert all(DESCRIPTION in last_text(body) for body in received_bodies(lab, "blind"))


def test_question_is_sent_to_the_describer_if_the_policy_includes_questions(key: str) -> None:
    """A different question about the same image gets its own description."""
    with describing_lab(policy=f"{POLICY}+question") as lab:
        ask(key)
        ask(key, {"type": "text", "text": "Which colour?"}, image())
        first, second = received_bodies(lab, "seer")
    assert f"> {QUESTION['text']}" in request_text(first)
    assert "> Which colour?" in request_text(second)


def test_equal_files_in_one_message_are_described_once(key: str) -> None:
    with describing_lab() as lab:
        answer = ask(key, QUESTION, image(), picture("red"), image())
        assert len(received_bodies(lab, "seer")) == 2
        assert last_text(received_bodies(lab, "blind")[0]).count(DESCRIPTION) == 3
    assert answer.headers["x-routing-adaptation"] == "image=described:by_model:3"


@pytest.mark.parametrize("state", ["absent", "disabled"])
def test_files_are_not_described_without_an_enabled_describe_route(key: str, state: str) -> None:
    """The route `default` is not used for descriptions."""
    with describing_lab() as lab:
        route = TaskRoute.objects.get(task_type="describe")
        if state == "absent":
            delete_route(SYSTEM, route)
        else:
            route.enabled = False
            save_route(SYSTEM, route)
        default = TaskRoute.objects.get(task_type="default")
        save_route(SYSTEM, default, (CandidateSpec("seer"),))
        answer = ask(key)
        assert received_bodies(lab, "seer") == []
    assert answer.headers["x-routing-adaptation"] == "image=described"


def test_file_sent_directly_to_the_describe_route_is_not_described(key: str) -> None:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(800))
    data = base64.b64encode(buffer.getvalue()).decode()
    sound = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    with describing_lab() as lab:
        set_content_policy(SYSTEM, POLICY)
        answer = ask(key, QUESTION, sound, model="task:describe")
        assert len(received_bodies(lab, "seer")) == 1
    assert answer.headers["x-routing-adaptation"] == "audio=described"


def test_describer_call_is_logged_as_a_request(key: str) -> None:
    """The describer's call is logged as a request by the same agent, with its tokens.

    The file's delivery links to it.
    """
    with describing_lab():
        row = logged(ask(key).headers["x-request-id"])
    (delivery,) = row.attempts.get().deliveries
    description = delivery["description"]
    assert (description["state"], description["describer"], description["fault"]) == ("by_model", "seer", "")
    call = description["call"]
    call_row = logged(call["requestId"])
    assert (call_row.surface, call_row.task_type, call_row.agent, call_row.key) == (
        "describe",
        "describe",
        row.agent,
        row.key,
    )
    assert (call_row.prompt_tokens, call_row.completion_tokens) == (call["promptTokens"], call["completionTokens"])
    assert 0 <= call["startedMs"] <= call["startedMs"] + call["durationMs"] <= row.duration_ms


def test_stored_description_does_not_contain_the_question(key: str) -> None:
    """A stored description contains the question only as a digest."""
    with describing_lab(policy=f"{POLICY}+question"):
        ask(key)
    (row,) = FileDescription.objects.all()
    assert (row.words, row.describer, row.conversation, row.fault) == (DESCRIPTION, "seer", "", "")
    assert QUESTION["text"] not in str(vars(row))
