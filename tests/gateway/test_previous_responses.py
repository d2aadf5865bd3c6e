"""With `previous_response_id`, a call continues from an earlier answer as if it had sent the whole conversation.

Only the agent that received the answer can refer to it.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.gateway.http import HttpCall
from routing_admin.gateway.responses.references import resolve_references
from routing_admin.models import KeptAnswer
from routing_admin.request_log import kept_answers as store
from routing_admin.request_log.kept_answers import KeptAnswers, Turn, kept_answers
from tests.cast import create_key
from tests.gateway.plane import PNG_URL, logged, post

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("isolated_kept_answers")]

PATH = "/v1/responses"
FIRST, SECOND, THIRD = ({"role": "user", "content": text} for text in ("Plan a picnic", "For five", "In the rain"))


def ask(key: str, items: Any, previous: Any = None, path: str = PATH, **more: object) -> Any:
    continued = {} if previous is None else {"previous_response_id": previous}
    return post(key, {"model": "echo-text", "input": items, **continued, **more}, path)


def successful_answer(key: str, items: Any, previous: Any = None, **more: object) -> Any:
    answer = ask(key, items, previous, **more)
    assert answer.status_code == 200, answer.content
    return answer.json()


def answer_text(answer: Any) -> str:
    return str(answer["output"][0]["content"][0]["text"])


@pytest.mark.parametrize("is_written", [False, True])
def test_previous_response_id_continues_the_whole_conversation(key: str, is_written: bool) -> None:
    """A call may continue the last answer or an earlier one, which is found in memory or in the database.

    Instructions are not inherited.
    """
    first = successful_answer(key, "Plan a picnic", instructions="Be brief.")
    conversation = [FIRST, *first["output"], SECOND]
    for _ in range(2):
        if is_written:
            kept_answers().write()
        second = successful_answer(key, [SECOND], first["id"])
        assert answer_text(second) == answer_text(successful_answer(key, conversation))
        assert second["previous_response_id"] == first["id"]
    third = successful_answer(key, [THIRD], second["id"])
    assert answer_text(third) == answer_text(successful_answer(key, [*conversation, *second["output"], THIRD]))


def test_items_referenced_in_earlier_input_are_part_of_the_conversation(key: str) -> None:
    """References are stored as the items that they resolve to, because the answers they refer to may expire first."""
    item = successful_answer(key, [FIRST])["output"][0]
    kept_answers().write()
    earlier = list(KeptAnswer.objects.values_list("pk", flat=True))
    second = successful_answer(key, [FIRST, {"type": "item_reference", "id": item["id"]}, SECOND])
    KeptAnswer.objects.filter(pk__in=earlier).delete()
    third = successful_answer(key, [THIRD], second["id"])
    assert answer_text(third) == answer_text(successful_answer(key, [FIRST, item, SECOND, *second["output"], THIRD]))


def test_reference_to_an_item_of_the_conversation_is_refused(key: str) -> None:
    first = successful_answer(key, [FIRST])
    refused = ask(key, [{"type": "item_reference", "id": first["output"][0]["id"]}, SECOND], first["id"])
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[0].id")


def test_files_and_paths_of_the_earlier_conversation_are_included(key: str) -> None:
    """Paths in errors refer to the new input. Paths into earlier input begin with `previous_response_id`."""
    picture = {"role": "user", "content": [{"type": "input_image", "image_url": PNG_URL}]}
    first = successful_answer(key, [picture])
    assert "image" in answer_text(successful_answer(key, [SECOND], first["id"]))
    refused = ask(key, [SECOND, {"role": "unknown", "content": "x"}], first["id"])
    assert refused.json()["error"]["param"] == "input[1].role"
    dropped = ask(key, [{**SECOND, "cache_control": {"type": "ephemeral"}}], first["id"])
    assert dropped.headers["x-routing-dropped"] == "input[0].cache_control"
    dropped = ask(key, [THIRD], successful_answer(key, [{**SECOND, "x": 1}])["id"])
    assert dropped.headers["x-routing-dropped"] == "previous_response_id[0].x"


def test_token_count_includes_the_earlier_conversation(key: str) -> None:
    first = successful_answer(key, [FIRST])
    whole = ask(key, [FIRST, *first["output"], SECOND], path=f"{PATH}/input_tokens").json()
    assert ask(key, [SECOND], first["id"], path=f"{PATH}/input_tokens").json() == whole


REFUSED = [
    "resp_1",
    "",
    "x" * 100_000,
    # An id begins with its creation time. These ids are from 1970 and 2106.
    f"resp_{'0' * 24}",
    f"resp_{'f' * 24}",
    # These are Arabic digits, which `int` accepts.
    "resp_٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠",
    "resp_\x00",
]


@pytest.mark.parametrize("identity", REFUSED)
def test_unknown_previous_response_id_is_refused_with_a_suggestion(key: str, identity: str) -> None:
    answer = ask(key, [SECOND], identity)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "previous_response_id")
    assert (error["code"], error["type"]) == ("previous_response_not_found", "invalid_request_error")
    assert "store: false" in error["message"]
    assert logged(answer.headers["x-request-id"]).outcome == "previous_response_not_found"


@pytest.mark.parametrize("identity", [1, ["resp_1"], {"id": "resp_1"}, True])
def test_previous_response_id_that_is_not_a_string_is_refused(key: str, identity: object) -> None:
    error = ask(key, [SECOND], identity).json()["error"]
    assert (error["param"], error["code"]) == ("previous_response_id", "invalid_type")


@pytest.mark.parametrize("items", [[], None, 1, {}])
def test_call_with_a_previous_response_id_requires_an_input(key: str, items: object) -> None:
    refused = ask(key, items, successful_answer(key, [FIRST])["id"])
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input")


@pytest.mark.parametrize("items", [[], None, 1, {}])
async def test_conversation_is_not_looked_up_for_a_call_without_an_input(items: object) -> None:
    body = {"input": items, "previous_response_id": "resp_1"}
    assert await resolve_references(cast(HttpCall, None), "a", body) == {**body, "previous_response_id": None}


def test_previous_response_id_of_another_agent_is_refused(key: str) -> None:
    first, other_key = successful_answer(key, [FIRST]), create_key("vision-agent")
    for _ in range(2):
        assert ask(other_key, [SECOND], first["id"]).status_code == 400
        kept_answers().write()
    assert ask(create_key("text-agent"), [SECOND], first["id"]).status_code == 200


def test_answer_with_store_false_cannot_be_continued(key: str) -> None:
    first = successful_answer(key, [FIRST])
    second = successful_answer(key, [SECOND], first["id"], store=False)
    assert ask(key, [THIRD], second["id"]).status_code == 400
    assert ask(key, [THIRD], first["id"]).status_code == 200


def test_installation_without_kept_answers_refuses_previous_response_id(key: str, settings: Any) -> None:
    first = successful_answer(key, [FIRST])
    settings.KEEP_ANSWERS = 0
    error = ask(key, [SECOND], first["id"]).json()["error"]
    assert (error["param"], error["code"]) == ("previous_response_id", "unsupported_value")
    assert "whole conversation" in error["message"]


def test_continuing_extends_the_expiry_of_the_conversation(key: str) -> None:
    """If a branch was not continued, its expiry is not extended."""
    first = successful_answer(key, [FIRST])
    branch = successful_answer(key, [THIRD], first["id"])
    kept_answers().write()
    soon = datetime.now(UTC) + timedelta(seconds=60)
    KeptAnswer.objects.update(expires_at=soon)
    second = successful_answer(key, [SECOND], first["id"])
    kept_answers().write()
    # These rows are two answers and the inputs that led to them.
    assert KeptAnswer.objects.filter(expires_at__gt=soon).count() == 4
    KeptAnswer.objects.filter(expires_at=soon).delete()
    assert ask(key, [THIRD], second["id"]).status_code == 200
    assert ask(key, [SECOND], branch["id"]).status_code == 400


def test_whole_conversation_counts_towards_the_size_limits(key: str, settings: Any) -> None:
    first = successful_answer(key, [{"role": "user", "content": "x" * 3000}])
    settings.MAX_JSON_BYTES = 2000
    refused = ask(key, [SECOND], first["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")
    settings.MAX_JSON_BYTES, settings.MAX_MESSAGES = 1_000_000, 2
    refused = ask(key, [SECOND], first["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "too_many_items")


def test_input_that_is_too_large_is_not_kept(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_BYTES", 2000)
    first = successful_answer(key, [{**FIRST, "unknown": "x" * 4000}])
    assert ask(key, [SECOND], first["id"]).json()["error"]["code"] == "previous_response_not_found"
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    assert ask(key, [FIRST, reference, SECOND]).status_code == 200


TURNS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.text(max_size=3), max_size=3), st.booleans()), min_size=1, max_size=9
)


@given(turns=TURNS, longest=st.integers(1, 4))
def test_every_branch_of_a_conversation_is_found_completely(
    turns: list[tuple[int, list[str], bool]], longest: int
) -> None:
    kept, conversations, usual_maximum = KeptAnswers(), [[]], store.MAX_TURNS  # type: ignore[var-annotated]
    keys: list[str] = []
    store.MAX_TURNS = longest
    try:
        for number, (drawn, items, is_written) in enumerate(turns):
            # The item at position 0 begins a conversation.
            place, key = drawn % (number + 1), f"{number:024x}"
            before, earlier = kept.find_conversation("one", keys[place - 1], 10**6) or ([], []) if place else ([], [])
            assert earlier == conversations[place]
            answer = [{"id": f"msg_{key}00", "text": f"answer {number}"}]
            kept.keep("one", Turn.of([*earlier, *items], before, len(items)), key, copy.deepcopy(answer))
            conversations.append([*earlier, *items, *answer])
            keys.append(key)
            if is_written:
                kept.write()
        for key, whole in zip(keys, conversations[1:], strict=True):
            found = kept.find_conversation("one", key, 10**6)
            assert found is not None
            assert found[1] == whole
            assert len(found[0]) <= longest + 1
    finally:
        store.MAX_TURNS = usual_maximum
        KeptAnswer.objects.all().delete()


def test_conversation_with_a_missing_row_is_refused() -> None:
    """Without the missing row, the remaining rows would form a different conversation."""
    kept = KeptAnswers()
    kept.keep("one", Turn.of(["a"]), "0" * 24, [])
    kept.keep("one", Turn.of(["a", "b"], ["0" * 24], 1), "1" * 24, [])
    kept.write()
    rows = list(KeptAnswer.objects.values())
    assert len(rows) == 4
    for row in rows:
        KeptAnswer.objects.filter(digest=row["digest"]).delete()
        assert kept.find_conversation("one", "1" * 24, 10**6) is None
        KeptAnswer.objects.create(**row)
    assert kept.find_conversation("one", "1" * 24, 10**6) == (["0" * 24, "1" * 24], ["a", "b"])
