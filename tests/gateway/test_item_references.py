"""`item_reference`: an answer's items are stored for the agent within limits, and later calls refer to them by id."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from capabilities.actors import SYSTEM
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.wire import Answer, Delta, Finish, ToolCallDelta
from routing_admin.console.settings.pruning import prune
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import GatewayError
from routing_admin.gateway.responses import references
from routing_admin.gateway.responses.endpoints import RESPONSES
from routing_admin.gateway.responses.parsing import parse
from routing_admin.gateway.responses.rendering import without_images
from routing_admin.models import KeptAnswer
from routing_admin.request_log import kept_answers as store
from routing_admin.request_log.kept_answers import KeptAnswers, KeptTooLargeError, kept_answers
from tests.cast import create_key
from tests.gateway.plane import logged, post
from tests.protocols.test_vendor_tools import RESPONSE

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("isolated_kept_answers")]

PATH = "/v1/responses"
USER = {"role": "user", "content": "Plan a picnic"}
MORE = {"role": "user", "content": "Go on"}


def ask(key: str, *items: object, **more: object) -> Any:
    return post(key, {"model": "echo-text", "input": list(items), **more}, PATH)


def answered_item(key: str, **more: object) -> dict[str, Any]:
    answer = ask(key, USER, **more)
    assert answer.status_code == 200, answer.content
    (item,) = answer.json()["output"]
    return dict(item)


def reference_to(item: dict[str, Any]) -> dict[str, str]:
    return {"type": "item_reference", "id": item["id"]}


def answer_text(answer: Any) -> str:
    return str(answer.json()["output"][0]["content"][0]["text"])


@pytest.mark.parametrize("is_written", [False, True])
def test_reference_resolves_to_the_answered_item(key: str, is_written: bool) -> None:
    item = answered_item(key)
    if is_written:
        kept_answers().write()
        assert KeptAnswer.objects.count() == 2
    referred, sent = (ask(key, USER, entry, MORE) for entry in (reference_to(item), item))
    assert answer_text(referred) == answer_text(sent)
    assert answer_text(ask(key, USER, {"id": item["id"]}, MORE)) == answer_text(sent)


def test_kept_answers_are_encrypted_and_written_with_the_log(key: str) -> None:
    answer = ask(key, USER)
    assert not KeptAnswer.objects.exists()
    logged(answer["x-request-id"])
    rows = KeptAnswer.objects.all()
    (item,) = answer.json()["output"]
    # One row contains the items of the answer; the other contains the input that was answered.
    assert len({row.owner for row in rows}) == len(rows) == 2
    for row in rows:
        # An item's id is `msg_`, the id of its answer, and a two-digit item number.
        assert item["id"][4:-2] not in row.digest
        assert b"picnic" not in bytes(row.ciphertext)
        assert row.size == len(bytes(row.ciphertext))


def test_tokens_of_referenced_items_are_counted(key: str) -> None:
    item = answered_item(key)
    counts = [
        post(key, {"model": "echo-text", "input": [USER, *more]}, f"{PATH}/input_tokens").json()["input_tokens"]
        for more in ([], [item], [reference_to(item)])
    ]
    assert counts[0] < counts[1] == counts[2]


def test_answer_with_store_false_is_not_kept(key: str) -> None:
    item = answered_item(key, store=False)
    kept_answers().write()
    assert not KeptAnswer.objects.exists()
    assert ask(key, USER, store=False).json()["store"] is False
    assert ask(key, USER, store=True).json()["store"] is True
    assert ask(key, reference_to(item), MORE).status_code == 400


@pytest.mark.parametrize(
    "reference",
    [
        {"type": "item_reference", "id": "rs_of_openai"},
        {"type": "item_reference"},
        {"id": "msg_1"},
        *(
            {"type": "item_reference", "id": value}
            for value in (1, [], "", "x" * 100_000, "ws_\x00", "input 0", "ws_é")
        ),
    ],
)
def test_unknown_reference_is_refused_with_a_suggestion(key: str, reference: dict[str, str]) -> None:
    answer = ask(key, USER, reference)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, "input[1].id", "item_not_found")
    assert "store: false" in error["message"]
    assert logged(answer["x-request-id"]).outcome == "item_not_found"


def test_reference_to_another_agents_item_is_refused(key: str) -> None:
    item, other = answered_item(key), create_key("vision-agent")
    for _ in range(2):
        assert ask(other, USER, reference_to(item)).status_code == 400
        kept_answers().write()
    assert ask(create_key("text-agent"), USER, reference_to(item), MORE).status_code == 200


def test_reference_to_an_expired_answer_is_refused_and_its_row_removed(key: str) -> None:
    item = answered_item(key)
    kept_answers().write()
    for remove in (lambda: (answered_item(key), kept_answers().write()), lambda: prune(SYSTEM, datetime.now(UTC))):
        KeptAnswer.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
        assert ask(key, reference_to(item), MORE).status_code == 400
        before = set(KeptAnswer.objects.values_list("pk", flat=True))
        remove()
        assert not before & set(KeptAnswer.objects.values_list("pk", flat=True))


def test_installation_without_kept_answers_refuses_store_true(key: str, settings: Any) -> None:
    settings.KEEP_ANSWERS = 0
    item = answered_item(key)
    kept_answers().write()
    assert not KeptAnswer.objects.exists()
    assert ask(key, reference_to(item), MORE).status_code == 400
    refused = ask(key, USER, store=True)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "store")


def test_repeated_reference_is_refused(key: str) -> None:
    """A thousand references to one item would multiply the body's size by a thousand. OpenAI refuses them as well."""
    item = answered_item(key)
    refused = ask(key, USER, reference_to(item), reference_to(item))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[2].id")


THOUGHT = ReasoningBlock(ThoughtForm.ENCRYPTED, "", "cHJvb2Y=", 0, 0, id="rs_1", dialect="openai-responses-v1")
DELTAS = (
    Delta(reasoning="hm", thoughts=(THOUGHT,)),
    Delta("Hello"),
    Delta(tool_calls=(ToolCallDelta(0, "c1", "add", "{}"),)),
)
KINDS = ["reasoning", "message", "function_call"]


def kept_in(call_kept: list[Any]) -> list[Any]:
    ((key, items),) = call_kept
    assert all(item["id"].partition("_")[2].startswith(key) for item in items)
    return [item["type"] for item in items]


def test_every_item_of_a_complete_or_streamed_answer_is_kept() -> None:
    kept: list[Any] = []
    call = parse({"model": "m", "input": "x"}, lambda _: None)
    assert call.is_stored
    call = ChatCall(call.chat, "m", keep=lambda key, items: kept.append((key, items)))
    answer = Answer("Hello", reasoning="hm", thoughts=(THOUGHT,), tool_calls=(DELTAS[2].tool_calls[0],))  # type: ignore[arg-type]
    whole = json.loads(RESPONSES.answer(answer, call, "m", "o").body)
    assert kept_in(kept) == KINDS
    assert kept[0][1] == whole["output"]
    kept.clear()
    events = RESPONSES.events(call, "m", "o")
    stream = b"".join([*map(events.write_delta, DELTAS), events.write_finish(Finish("tool_calls"))])
    assert kept_in(kept) == KINDS
    last = json.loads(stream.decode().strip().rpartition("data: ")[2])
    assert kept[0][1] == last["response"]["output"]


def test_items_of_openais_own_tools_keep_their_ids(key: str) -> None:
    answer = PROTOCOLS["openai-responses"].decode(200, {}, json.dumps(RESPONSE).encode())
    assert isinstance(answer, Answer)
    call = parse({"model": "m", "input": "x"}, lambda _: None)
    keep = partial(kept_answers().keep, "text-agent", None)
    keep("0" * 24, [{"type": "web_search_call", "id": "ws_1", "status": "failed"}])
    kept_answers().write()
    items = json.loads(RESPONSES.answer(answer, replace(call, keep=keep), "m", "o").body)["output"]
    assert {"ws_1", "ci_1"} < {item["id"] for item in items}
    whole = ask(key, USER, *items, MORE)
    for _ in range(2):
        referred = ask(key, USER, *map(reference_to, items), MORE)
        assert answer_text(referred) == answer_text(whole)
        assert referred.headers["x-routing-dropped"] == whole.headers["x-routing-dropped"]
        kept_answers().write()
    assert kept_answers().find("text-agent", ["ws_1"], 10_000) == {"ws_1": [RESPONSE["output"][1]]}
    assert ask(create_key("vision-agent"), USER, reference_to(items[1]), MORE).status_code == 400


@pytest.mark.parametrize("how", ["broke", "disconnected"])
def test_complete_items_of_an_interrupted_stream_are_kept(how: str) -> None:
    """The client has seen the ids of complete items and may refer to them.

    A tool call that was cut off has incomplete arguments and is not stored.
    """
    kept: list[Any] = []
    call = ChatCall(parse({"model": "m", "input": "x"}, lambda _: None).chat, "m")
    call.keep = lambda key, items: kept.append((key, items))  # type: ignore[misc]
    events: Any = RESPONSES.events(call, "m", "o")
    for delta in DELTAS[:2] if how == "disconnected" else DELTAS:
        events.write_delta(delta)
    if how == "broke":
        events.write_error(GatewayError(502, "stream_broken", "Broke."), "r")
    events.keep_items()
    events.keep_items()
    assert kept_in(kept) == KINDS[:2]
    assert kept[0][1][1]["content"][0]["text"] == "Hello"


def test_kept_image_item_has_no_image_data() -> None:
    """A generated image's stored item has no data, because the image is already stored as an artifact."""
    output = [{"id": "ig_1", "type": "image_generation_call", "result": "AAAA"}]
    assert without_images(output) == [{**output[0], "result": None}]
    assert output[0]["result"] == "AAAA"


def fill(kept: KeptAnswers, agent: str, answers: int, size: int) -> None:
    for number in range(answers):
        kept.keep(agent, None, f"{number:024x}", [{"id": f"msg_{number:024x}00", "text": "x" * size}])
        kept.write()


def row_keys(kept: KeptAnswers, agent: str, answers: int) -> list[int]:
    found_answers = kept.find(agent, (f"{number:024x}" for number in range(answers)), 10**9)
    return sorted(int(key, 16) for key in found_answers)


def test_oldest_answers_are_evicted_per_agent_and_in_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits count stored bytes. An agent's answers never evict those of another agent that is within its limit."""
    kept = KeptAnswers()
    fill(kept, "one", 1, 10)
    stored = KeptAnswer.objects.get().size
    KeptAnswer.objects.all().delete()
    monkeypatch.setattr(store, "CHECK_SHARE", 10**9)
    monkeypatch.setattr(store, "AGENT_BYTES", stored * 3 + stored // 2)
    fill(kept, "two", 1, 10)
    fill(kept, "one", 6, 10)
    assert (row_keys(kept, "one", 6), row_keys(kept, "two", 1)) == ([3, 4, 5], [0])
    monkeypatch.setattr(store, "ALL_BYTES", stored * 2 + stored // 2)
    fill(kept, "three", 1, 10)
    assert (row_keys(kept, "one", 6), row_keys(kept, "two", 1), row_keys(kept, "three", 1)) == ([5], [], [0])


def test_memory_of_kept_answers_is_bounded_until_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WAITING_BYTES", 1000)
    kept = KeptAnswers()
    for number in range(10):
        kept.keep("one", None, f"{number:024x}", [{"id": f"msg_{number:024x}00", "text": "x" * 250}])
    assert row_keys(kept, "one", 10) == [7, 8, 9]


def test_referenced_items_count_towards_the_size_limit(key: str, settings: Any) -> None:
    kept = KeptAnswers()
    fill(kept, "one", 3, 1000)
    with pytest.raises(KeptTooLargeError):
        kept.find("one", (f"{number:024x}" for number in range(3)), 2500)
    items = [answered_item(key), answered_item(key)]
    settings.MAX_JSON_BYTES = 500
    refused = ask(key, *map(reference_to, items), MORE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")


def test_reference_lookup_is_retried_until_another_process_has_written_the_answer(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the client continues at once on another worker, the row may not be written yet, so it is looked up again."""
    item = answered_item(key)
    tries: list[object] = []
    find = KeptAnswers.find

    def find_later(*arguments: Any) -> Any:
        tries.append(arguments)
        return find(*arguments) if len(tries) == 3 else {}

    monkeypatch.setattr(references, "RETRY_DELAYS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(KeptAnswers, "find", find_later)
    assert ask(key, USER, reference_to(item), MORE).status_code == 200
    assert len(tries) == 3


def test_call_without_references_makes_no_lookup(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "run_in_thread", None)
    assert ask(key, USER, MORE).status_code == 200


def test_id_older_than_kept_answers_is_refused_without_a_lookup(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer's age can be read from its id, which contains the time."""
    monkeypatch.setattr(references, "run_in_thread", None)
    old = f"msg_{int(time.time()) - 7200:08x}{'0' * 16}00"
    assert ask(key, {"type": "item_reference", "id": old}, MORE).status_code == 400
