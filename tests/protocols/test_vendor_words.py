"""What the vendors' SDKs can say of an answer, held against our tables: a word that is new there fails here.

Read from the types of the SDKs that are installed, so that an upgrade of one shows what its vendor has added.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any

import pytest
from anthropic import types as anthropic_types
from anthropic.types import beta as anthropic_beta
from google.genai import types as gemini_types
from openai.types import chat, completion_usage
from pydantic import BaseModel

from capabilities.core.protocols.anthropic import finish as anthropic_finish
from capabilities.core.protocols.anthropic import usage as anthropic_usage
from capabilities.core.protocols.finish import UNFINISHED, WHOLE, ending_of
from capabilities.core.protocols.gemini import finish as gemini_finish
from capabilities.core.protocols.gemini import usage as gemini_usage
from capabilities.core.protocols.openai import finish as openai_finish
from capabilities.core.protocols.openai import usage as openai_usage

FINISHES = {
    "openai": {*openai_finish.ENDINGS, *openai_finish.BROKEN},
    "anthropic": {*anthropic_finish.ENDINGS},
    "gemini": {*gemini_finish.ENDINGS, *gemini_finish.FAILURES},
}


def literals(annotation: Any) -> set[str]:
    """Every text that a type allows, however deep it stands."""
    arguments = typing.get_args(annotation)
    return {each for each in arguments if isinstance(each, str)}.union(*(literals(each) for each in arguments))


def names(model: type[BaseModel]) -> set[str]:
    """The names of a model's fields on the wire."""
    return {field.alias or name for name, field in model.model_fields.items()}


def unknown(said: Iterable[str], known: Iterable[str]) -> set[str]:
    """What an SDK can say and no table knows."""
    return set(said) - set(known)


def sdk_finishes() -> list[tuple[str, set[str]]]:
    """The reasons to stop of each SDK's types, by protocol."""
    return [
        ("openai", literals(chat.chat_completion.Choice.model_fields["finish_reason"].annotation)),
        ("openai", literals(chat.chat_completion_chunk.Choice.model_fields["finish_reason"].annotation)),
        ("anthropic", literals(anthropic_types.StopReason)),
        ("anthropic", literals(anthropic_beta.BetaStopReason)),
        ("gemini", {reason.value for reason in gemini_types.FinishReason}),
    ]


def sdk_counts() -> list[tuple[str, set[str], set[str]]]:
    """The names of each SDK's counts, and those that our table for that place knows."""
    openai, anthropic, gemini = openai_usage, anthropic_usage, gemini_usage
    prompt, completion = completion_usage.PromptTokensDetails, completion_usage.CompletionTokensDetails
    counted = {*anthropic.TOTALS, *anthropic.DETAILS, *anthropic.UNREAD}
    written, thought = anthropic_types.CacheCreation, anthropic_types.OutputTokensDetails
    metadata, modalities = gemini_types.GenerateContentResponseUsageMetadata, gemini_types.MediaModality
    return [
        ("openai", names(completion_usage.CompletionUsage), {*openai.TOTALS, *openai.DETAILS}),
        ("openai", names(prompt), {*openai.PROMPT, *openai.UNREAD}),
        ("openai", names(completion), {*openai.COMPLETION, *openai.UNREAD}),
        *(("anthropic", names(each), counted) for each in (anthropic_types.Usage, anthropic_types.MessageDeltaUsage)),
        *(
            ("anthropic", names(each), counted)
            for each in (anthropic_beta.BetaUsage, anthropic_beta.BetaMessageDeltaUsage)
        ),
        ("anthropic", names(written), set(anthropic.DETAILS["cache_creation"])),
        ("anthropic", names(thought), set(anthropic.DETAILS["output_tokens_details"])),
        ("gemini", names(metadata), {*gemini.TOTALS, *gemini.DETAILS, *gemini.UNREAD}),
        *(
            ("gemini", {each.value for each in modalities}, {*table, *gemini.UNREAD_MODALITIES})
            for table in gemini.DETAILS.values()
        ),
    ]


@pytest.mark.parametrize(("protocol", "said"), sdk_finishes())
def test_every_reason_to_stop_of_an_sdk_stands_in_our_table(protocol: str, said: set[str]) -> None:
    """An upgrade that brings a new one fails here, and names it."""
    assert len(said) > 4
    assert not unknown(said, FINISHES[protocol])


@pytest.mark.parametrize(("protocol", "said", "known"), sdk_counts())
def test_every_count_of_an_sdk_stands_in_our_table(protocol: str, said: set[str], known: set[str]) -> None:
    """It is read, or known and left out for a reason that is written down."""
    assert said, protocol
    assert not unknown(said, known)


def test_a_word_that_is_new_would_be_noticed() -> None:
    """The comparison bites: planted words are the ones it names."""
    assert unknown({"stop", "vanished"}, FINISHES["openai"]) == {"vanished"}
    assert unknown({"STOP", "EVAPORATED"}, FINISHES["gemini"]) == {"EVAPORATED"}


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "gemini"])
def test_no_word_that_we_do_not_know_means_complete(protocol: str) -> None:
    """Nor does another case of a known one, a number, or a list; tool calls beside it change nothing."""
    endings = {"openai": openai_finish, "anthropic": anthropic_finish, "gemini": gemini_finish}[protocol].ENDINGS
    for word in ("vanished", "Stop", "done", 7, ["stop"]):
        for has_calls in (False, True):
            assert ending_of(endings, word, has_calls=has_calls) is UNFINISHED
    assert ending_of(endings, None, has_calls=False) is WHOLE
